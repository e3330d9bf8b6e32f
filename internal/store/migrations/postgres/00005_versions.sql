-- +goose Up

-- Which state of a component's history is stored: whoever remembers what it read of it
-- compares. It is raised with each change, and is at least the time in microseconds.
CREATE TABLE history_versions (
    scope   TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- whose: its arrivals, or its closed pull requests
    version BIGINT NOT NULL
);
