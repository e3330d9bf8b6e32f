-- +goose Up

-- Times are microseconds since 1970, 0 for none. 9223372036854775807 is never.

CREATE TABLE deliveries (
    forge       TEXT NOT NULL,
    id          TEXT NOT NULL,
    event       TEXT NOT NULL,
    repo        TEXT NOT NULL,
    keys        TEXT NOT NULL, -- JSON list of the keys that it woke
    received_at INTEGER NOT NULL,
    PRIMARY KEY (forge, id)
) STRICT;
CREATE INDEX deliveries_received ON deliveries (received_at);

-- A row a key. gen counts the claims and tells a run from one that lost its
-- lease. A claim takes due_at away (never): what is there when the run ends was
-- asked for since it began.
CREATE TABLE wakes (
    key         TEXT PRIMARY KEY,
    gen         INTEGER NOT NULL DEFAULT 0,
    due_at      INTEGER NOT NULL,
    not_before  INTEGER NOT NULL DEFAULT 0,
    owner       TEXT NOT NULL DEFAULT '',
    lease_until INTEGER NOT NULL DEFAULT 0,
    ended_at    INTEGER NOT NULL DEFAULT 0,
    fails       INTEGER NOT NULL DEFAULT 0,
    -- when the key can be claimed
    ready_at    INTEGER GENERATED ALWAYS AS (CASE WHEN owner = '' THEN max(due_at, not_before) ELSE lease_until END) VIRTUAL
) STRICT;
CREATE INDEX wakes_ready ON wakes (ready_at);

CREATE TABLE pulls (
    repo       TEXT NOT NULL,
    number     INTEGER NOT NULL,
    branch     TEXT NOT NULL,
    state      TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    data       TEXT NOT NULL,
    PRIMARY KEY (repo, number)
) STRICT;
CREATE INDEX pulls_branch ON pulls (repo, branch);

CREATE TABLE pull_cursors (
    repo    TEXT PRIMARY KEY,
    read_to INTEGER NOT NULL
) STRICT;

CREATE TABLE units (
    key        TEXT PRIMARY KEY,
    repo       TEXT NOT NULL,
    pipeline   TEXT NOT NULL,
    component  TEXT NOT NULL,
    digest     TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    data       TEXT NOT NULL
) STRICT;
CREATE INDEX units_pipeline ON units (pipeline, repo);
CREATE INDEX units_repo ON units (repo);

CREATE TABLE arrived (
    unit        TEXT NOT NULL,
    environment TEXT NOT NULL,
    commit_id   TEXT NOT NULL,
    release_id  TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    verified_at INTEGER NOT NULL,
    degraded_at INTEGER NOT NULL,
    data        TEXT NOT NULL,
    PRIMARY KEY (unit, environment, commit_id, release_id)
) STRICT;
CREATE UNIQUE INDEX arrived_seq ON arrived (unit, seq);

CREATE TABLE observations (
    unit        TEXT NOT NULL,
    environment TEXT NOT NULL,
    target      TEXT NOT NULL,
    data        TEXT NOT NULL,
    PRIMARY KEY (unit, environment, target)
) STRICT;

CREATE TABLE asks (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    unit        TEXT NOT NULL,
    environment TEXT NOT NULL,
    verb        TEXT NOT NULL,
    release_id  TEXT NOT NULL,
    by_login    TEXT NOT NULL,
    reason      TEXT NOT NULL,
    source      TEXT NOT NULL,
    at          INTEGER NOT NULL,
    done_at     INTEGER NOT NULL,
    outcome     TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX asks_source ON asks (source) WHERE source <> '';
CREATE INDEX asks_open ON asks (unit, id) WHERE done_at = 0;
CREATE INDEX asks_done ON asks (done_at);

CREATE TABLE promotions (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    unit        TEXT NOT NULL,
    repo        TEXT NOT NULL,
    pipeline    TEXT NOT NULL,
    component   TEXT NOT NULL,
    environment TEXT NOT NULL,
    kind        TEXT NOT NULL,
    release_id  TEXT NOT NULL,
    pull        INTEGER NOT NULL,
    state       TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    data        TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX promotions_pull ON promotions (repo, pull) WHERE pull > 0;
CREATE INDEX promotions_place ON promotions (pipeline, component, environment, id);
CREATE INDEX promotions_repo ON promotions (repo, id);
CREATE INDEX promotions_state ON promotions (state, id);

CREATE TABLE events (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    at          INTEGER NOT NULL,
    repo        TEXT NOT NULL,
    pipeline    TEXT NOT NULL,
    component   TEXT NOT NULL,
    environment TEXT NOT NULL,
    pull        INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    message     TEXT NOT NULL,
    data        TEXT NOT NULL,
    once        TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_once ON events (once) WHERE once <> '';
CREATE INDEX events_place ON events (pipeline, component, seq);
CREATE INDEX events_pull ON events (repo, pull, seq);
CREATE INDEX events_at ON events (at);

CREATE TABLE audit (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    actor   TEXT NOT NULL,
    via     TEXT NOT NULL,
    verb    TEXT NOT NULL,
    subject TEXT NOT NULL,
    reason  TEXT NOT NULL,
    outcome TEXT NOT NULL,
    source  TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX audit_source ON audit (source) WHERE source <> '';
CREATE INDEX audit_subject ON audit (subject, id);
CREATE INDEX audit_actor ON audit (actor, id);
CREATE INDEX audit_at ON audit (at);

CREATE TABLE slots (
    name        TEXT PRIMARY KEY,
    owner       TEXT NOT NULL,
    lease_until INTEGER NOT NULL
) STRICT;

CREATE TABLE wishes (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    repo TEXT NOT NULL,
    unit TEXT NOT NULL,
    UNIQUE (repo, unit)
) STRICT;
CREATE INDEX wishes_unit ON wishes (unit);

CREATE TABLE state (
    key  TEXT PRIMARY KEY,
    data BLOB NOT NULL
) STRICT;
