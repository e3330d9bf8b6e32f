-- +goose Up

-- The number of the account that gave the command, which stays when its login is changed; 0: not known.
ALTER TABLE asks ADD COLUMN by_id BIGINT NOT NULL DEFAULT 0;
