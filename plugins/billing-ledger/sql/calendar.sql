CREATE OR REPLACE FUNCTION ledger_ms(span interval) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT ceil(extract(epoch FROM span) * 1000)::bigint
$$;

CREATE OR REPLACE FUNCTION ledger_month(at timestamptz) RETURNS date LANGUAGE sql IMMUTABLE AS $$
  SELECT date_trunc('month', at AT TIME ZONE 'UTC')::date
$$;

CREATE OR REPLACE FUNCTION ledger_hour(at timestamptz) RETURNS timestamptz
LANGUAGE sql IMMUTABLE AS $$
  SELECT date_bin('1 hour', at, '1970-01-01 00:00:00Z')
$$;
