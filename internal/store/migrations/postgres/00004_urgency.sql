-- +goose Up

-- How urgent it is that the key runs: the smaller the more. A key is claimed before
-- those that are less urgent, however long they have been due.
ALTER TABLE wakes ADD COLUMN urgency BIGINT NOT NULL DEFAULT 0;
CREATE INDEX wakes_urgent ON wakes (urgency, ready_at);
