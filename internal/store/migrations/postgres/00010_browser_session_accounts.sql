-- +goose Up

-- The user's logins on the forges, a JSON object; empty: none is known.
ALTER TABLE browser_sessions ADD COLUMN accounts TEXT COLLATE "C" NOT NULL DEFAULT '';
