-- DuckDB: the findings that took most of a step over the last 30 days, by host.
SELECT host, finding.key AS rule, count(*) AS captures, round(avg(finding.value / unit_ns), 3) AS share_of_a_step
FROM (
  SELECT host, unit_ns, unnest(map_entries(findings_ns)) AS finding
  FROM read_parquet('history/rows/*.parquet')
  WHERE time > now() - INTERVAL 30 DAY AND unit_ns > 0
)
GROUP BY ALL
ORDER BY share_of_a_step DESC
LIMIT 20;
