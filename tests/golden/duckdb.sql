CASE
  WHEN "anomaly score" IS NULL OR CAST(CAST("anomaly score" AS DOUBLE) AS VARCHAR) IN ('nan', '-nan') THEN -1
  WHEN CAST("anomaly score" AS DOUBLE) < CAST('0.46' AS DOUBLE) THEN 0
  WHEN CAST("anomaly score" AS DOUBLE) >= CAST('1.9350000000000003' AS DOUBLE) THEN 1
  ELSE -1
END
