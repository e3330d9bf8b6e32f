-- +goose Up

-- What an entry is about in full, as JSON, such as what a merge was judged by; empty: nothing.
ALTER TABLE audit ADD COLUMN data TEXT NOT NULL DEFAULT '';
