-- +goose Up

-- A pull request may move several components: a row for each.
DROP INDEX promotions_pull;
CREATE UNIQUE INDEX promotions_pull ON promotions (repo, pull, unit) WHERE pull > 0;
