-- +goose Up

-- An arrival stays for as long as its unit: what was degraded or taken back is so however much arrives
-- later. recent has the newest of each environment, which every look reads.
ALTER TABLE arrived ADD COLUMN withdrawn_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE arrived ADD COLUMN recent INTEGER NOT NULL DEFAULT 1;
CREATE INDEX arrived_recent ON arrived (unit, environment, seq) WHERE recent = 1;
CREATE INDEX arrived_release ON arrived (unit, release_id, environment, seq);
