"""Still pictures of what scripts draw in the page: for paper that is printed before they did, and for readers without scripts."""
