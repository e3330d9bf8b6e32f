-- +goose Up

-- Which environment a command was about; empty: several, or what was on record before.
ALTER TABLE audit ADD COLUMN environment TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX audit_environment ON audit (environment, id);
