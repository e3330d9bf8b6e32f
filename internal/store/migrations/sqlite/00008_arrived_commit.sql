-- +goose Up

-- A commit status of a commit that landed finds whose release it brought.
CREATE INDEX arrived_commit ON arrived (commit_id, unit);
