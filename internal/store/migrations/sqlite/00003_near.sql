-- +goose Up

-- What a look needs of pull requests is found by what they are about, so that it
-- costs what is open and near, and not what there ever was. The rows are only a
-- copy of what the forge has: they are read again from there.
DROP TABLE pulls;
DELETE FROM pull_cursors;
CREATE TABLE pulls (
    repo         TEXT NOT NULL,
    number       INTEGER NOT NULL,
    branch       TEXT NOT NULL,
    state        TEXT NOT NULL,
    pipeline     TEXT NOT NULL,
    environment  TEXT NOT NULL,
    component    TEXT NOT NULL,
    revert       INTEGER NOT NULL, -- 1: of a revert
    author       TEXT NOT NULL,
    head         TEXT NOT NULL,
    merge_commit TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    closed_at    INTEGER NOT NULL, -- 0 while it is open
    updated_at   INTEGER NOT NULL,
    version      INTEGER NOT NULL, -- rises with every write
    rules        TEXT NOT NULL, -- by which what it moved was worked out (past_pulls); empty: open, or not yet
    data         TEXT NOT NULL,
    PRIMARY KEY (repo, number)
) STRICT;
CREATE INDEX pulls_place ON pulls (repo, pipeline, component, rules);
CREATE INDEX pulls_open ON pulls (repo, branch) WHERE closed_at = 0;
CREATE INDEX pulls_head ON pulls (repo, head, number);
CREATE INDEX pulls_merge ON pulls (repo, merge_commit, number) WHERE merge_commit <> '';
CREATE INDEX pulls_closed ON pulls (repo, pipeline, closed_at);
CREATE INDEX pulls_reverts ON pulls (repo, pipeline, created_at) WHERE revert = 1;

-- What closed pull requests moved, a row a component. One that we replaced has none.
CREATE TABLE past_pulls (
    repo        TEXT NOT NULL,
    number      INTEGER NOT NULL,
    component   TEXT NOT NULL,
    pipeline    TEXT NOT NULL,
    environment TEXT NOT NULL,
    branch_of   TEXT NOT NULL, -- the component that its branch names
    kind        INTEGER NOT NULL, -- PastKind
    release_id  TEXT NOT NULL,
    short       TEXT NOT NULL, -- of release_id; empty: unknown
    whole       TEXT NOT NULL, -- short, of all that it moved
    at          INTEGER NOT NULL,
    commit_id   TEXT NOT NULL,
    by_login    TEXT NOT NULL,
    rules       TEXT NOT NULL,
    version     INTEGER NOT NULL, -- of the row in pulls
    PRIMARY KEY (repo, number, component)
) STRICT;
CREATE INDEX past_pulls_newest ON past_pulls (repo, pipeline, component, environment, kind, at);
CREATE INDEX past_pulls_merged ON past_pulls (repo, pipeline, component, short) WHERE kind = 0;
CREATE INDEX past_pulls_restraints ON past_pulls (repo, pipeline, component, short) WHERE kind > 0;
CREATE INDEX past_pulls_whole ON past_pulls (repo, pipeline, branch_of, environment, whole, number) WHERE kind = 0;
