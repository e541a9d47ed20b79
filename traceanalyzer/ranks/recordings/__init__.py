"""The files of an analysis, sorted into jobs and recordings: who is who, and who is missing."""
