-- +goose Up

-- What a look needs of pull requests is found by what they are about, so that it
-- costs what is open and near, and not what there ever was. The rows are only a
-- copy of what the forge has: they are read again from there.
DROP TABLE pulls;
DELETE FROM pull_cursors;
CREATE TABLE pulls (
    repo         TEXT COLLATE "C" NOT NULL,
    number       BIGINT NOT NULL,
    branch       TEXT COLLATE "C" NOT NULL,
    state        TEXT COLLATE "C" NOT NULL,
    pipeline     TEXT COLLATE "C" NOT NULL,
    environment  TEXT COLLATE "C" NOT NULL,
    component    TEXT COLLATE "C" NOT NULL,
    revert       BIGINT NOT NULL, -- 1: of a revert
    author       TEXT COLLATE "C" NOT NULL,
    head         TEXT COLLATE "C" NOT NULL,
    merge_commit TEXT COLLATE "C" NOT NULL,
    created_at   BIGINT NOT NULL,
    closed_at    BIGINT NOT NULL, -- 0 while it is open
    updated_at   BIGINT NOT NULL,
    version      BIGINT NOT NULL, -- rises with every write
    rules        TEXT COLLATE "C" NOT NULL, -- by which what it moved was worked out (past_pulls); empty: open, or not yet
    data         TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (repo, number)
);
CREATE INDEX pulls_place ON pulls (repo, pipeline, component, rules);
CREATE INDEX pulls_open ON pulls (repo, branch) WHERE closed_at = 0;
CREATE INDEX pulls_head ON pulls (repo, head, number);
CREATE INDEX pulls_merge ON pulls (repo, merge_commit, number) WHERE merge_commit <> '';
CREATE INDEX pulls_closed ON pulls (repo, pipeline, closed_at);
CREATE INDEX pulls_reverts ON pulls (repo, pipeline, created_at) WHERE revert = 1;

-- What closed pull requests moved, a row a component. One that we replaced has none.
CREATE TABLE past_pulls (
    repo        TEXT COLLATE "C" NOT NULL,
    number      BIGINT NOT NULL,
    component   TEXT COLLATE "C" NOT NULL,
    pipeline    TEXT COLLATE "C" NOT NULL,
    environment TEXT COLLATE "C" NOT NULL,
    branch_of   TEXT COLLATE "C" NOT NULL, -- the component that its branch names
    kind        BIGINT NOT NULL, -- PastKind
    release_id  TEXT COLLATE "C" NOT NULL,
    short       TEXT COLLATE "C" NOT NULL, -- of release_id; empty: unknown
    whole       TEXT COLLATE "C" NOT NULL, -- short, of all that it moved
    at          BIGINT NOT NULL,
    commit_id   TEXT COLLATE "C" NOT NULL,
    by_login    TEXT COLLATE "C" NOT NULL,
    rules       TEXT COLLATE "C" NOT NULL,
    version     BIGINT NOT NULL, -- of the row in pulls
    PRIMARY KEY (repo, number, component)
);
CREATE INDEX past_pulls_newest ON past_pulls (repo, pipeline, component, environment, kind, at);
CREATE INDEX past_pulls_merged ON past_pulls (repo, pipeline, component, short) WHERE kind = 0;
CREATE INDEX past_pulls_restraints ON past_pulls (repo, pipeline, component, short) WHERE kind > 0;
CREATE INDEX past_pulls_whole ON past_pulls (repo, pipeline, branch_of, environment, whole, number) WHERE kind = 0;
