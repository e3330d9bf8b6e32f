-- +goose Up

-- Times are microseconds since 1970, 0 for none. 9223372036854775807 is never.
-- Text sorts by its bytes (collation C), as it does in SQLite.

-- The database's clock: every lease and every due time is judged by it, so that
-- the replicas' clocks need not agree. Stable within a statement, so that an
-- index can be searched with it.
-- +goose StatementBegin
CREATE FUNCTION liftlock_now() RETURNS BIGINT LANGUAGE sql STABLE AS
$$ SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint $$;
-- +goose StatementEnd

CREATE TABLE deliveries (
    forge       TEXT COLLATE "C" NOT NULL,
    id          TEXT COLLATE "C" NOT NULL,
    event       TEXT COLLATE "C" NOT NULL,
    repo        TEXT COLLATE "C" NOT NULL,
    keys        TEXT COLLATE "C" NOT NULL, -- JSON list of the keys that it woke
    received_at BIGINT NOT NULL,
    PRIMARY KEY (forge, id)
);
CREATE INDEX deliveries_received ON deliveries (received_at);

-- A row a key. gen counts the claims and tells a run from one that lost its
-- lease. A claim takes due_at away (never): what is there when the run ends was
-- asked for since it began.
CREATE TABLE wakes (
    key         TEXT COLLATE "C" PRIMARY KEY,
    gen         BIGINT NOT NULL DEFAULT 0,
    due_at      BIGINT NOT NULL,
    not_before  BIGINT NOT NULL DEFAULT 0,
    owner       TEXT COLLATE "C" NOT NULL DEFAULT '',
    lease_until BIGINT NOT NULL DEFAULT 0,
    ended_at    BIGINT NOT NULL DEFAULT 0,
    fails       BIGINT NOT NULL DEFAULT 0,
    -- when the key can be claimed
    ready_at    BIGINT GENERATED ALWAYS AS (CASE WHEN owner = '' THEN greatest(due_at, not_before) ELSE lease_until END) STORED
);
CREATE INDEX wakes_ready ON wakes (ready_at);

CREATE TABLE pulls (
    repo       TEXT COLLATE "C" NOT NULL,
    number     BIGINT NOT NULL,
    branch     TEXT COLLATE "C" NOT NULL,
    state      TEXT COLLATE "C" NOT NULL,
    updated_at BIGINT NOT NULL,
    data       TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (repo, number)
);
CREATE INDEX pulls_branch ON pulls (repo, branch);

CREATE TABLE pull_cursors (
    repo    TEXT COLLATE "C" PRIMARY KEY,
    read_to BIGINT NOT NULL
);

CREATE TABLE units (
    key        TEXT COLLATE "C" PRIMARY KEY,
    repo       TEXT COLLATE "C" NOT NULL,
    pipeline   TEXT COLLATE "C" NOT NULL,
    component  TEXT COLLATE "C" NOT NULL,
    digest     TEXT COLLATE "C" NOT NULL,
    updated_at BIGINT NOT NULL,
    data       TEXT COLLATE "C" NOT NULL
);
CREATE INDEX units_pipeline ON units (pipeline, repo);
CREATE INDEX units_repo ON units (repo);

CREATE TABLE arrived (
    unit        TEXT COLLATE "C" NOT NULL,
    environment TEXT COLLATE "C" NOT NULL,
    commit_id   TEXT COLLATE "C" NOT NULL,
    release_id  TEXT COLLATE "C" NOT NULL,
    seq         BIGINT NOT NULL,
    at          BIGINT NOT NULL,
    verified_at BIGINT NOT NULL,
    degraded_at BIGINT NOT NULL,
    data        TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (unit, environment, commit_id, release_id)
);
CREATE UNIQUE INDEX arrived_seq ON arrived (unit, seq);

CREATE TABLE observations (
    unit        TEXT COLLATE "C" NOT NULL,
    environment TEXT COLLATE "C" NOT NULL,
    target      TEXT COLLATE "C" NOT NULL,
    data        TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (unit, environment, target)
);

CREATE TABLE asks (
    id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    unit        TEXT COLLATE "C" NOT NULL,
    environment TEXT COLLATE "C" NOT NULL,
    verb        TEXT COLLATE "C" NOT NULL,
    release_id  TEXT COLLATE "C" NOT NULL,
    by_login    TEXT COLLATE "C" NOT NULL,
    reason      TEXT COLLATE "C" NOT NULL,
    source      TEXT COLLATE "C" NOT NULL,
    at          BIGINT NOT NULL,
    done_at     BIGINT NOT NULL,
    outcome     TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX asks_source ON asks (source) WHERE source <> '';
CREATE INDEX asks_open ON asks (unit, id) WHERE done_at = 0;
CREATE INDEX asks_done ON asks (done_at);

CREATE TABLE promotions (
    id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    unit        TEXT COLLATE "C" NOT NULL,
    repo        TEXT COLLATE "C" NOT NULL,
    pipeline    TEXT COLLATE "C" NOT NULL,
    component   TEXT COLLATE "C" NOT NULL,
    environment TEXT COLLATE "C" NOT NULL,
    kind        TEXT COLLATE "C" NOT NULL,
    release_id  TEXT COLLATE "C" NOT NULL,
    pull        BIGINT NOT NULL,
    state       TEXT COLLATE "C" NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    data        TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX promotions_pull ON promotions (repo, pull) WHERE pull > 0;
CREATE INDEX promotions_place ON promotions (pipeline, component, environment, id);
CREATE INDEX promotions_repo ON promotions (repo, id);
CREATE INDEX promotions_state ON promotions (state, id);

CREATE TABLE events (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          BIGINT NOT NULL,
    repo        TEXT COLLATE "C" NOT NULL,
    pipeline    TEXT COLLATE "C" NOT NULL,
    component   TEXT COLLATE "C" NOT NULL,
    environment TEXT COLLATE "C" NOT NULL,
    pull        BIGINT NOT NULL,
    kind        TEXT COLLATE "C" NOT NULL,
    message     TEXT COLLATE "C" NOT NULL,
    data        TEXT COLLATE "C" NOT NULL,
    once        TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX events_once ON events (once) WHERE once <> '';
CREATE INDEX events_place ON events (pipeline, component, seq);
CREATE INDEX events_pull ON events (repo, pull, seq);
CREATE INDEX events_at ON events (at);

CREATE TABLE audit (
    id      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      BIGINT NOT NULL,
    actor   TEXT COLLATE "C" NOT NULL,
    via     TEXT COLLATE "C" NOT NULL,
    verb    TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    reason  TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    source  TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX audit_source ON audit (source) WHERE source <> '';
CREATE INDEX audit_subject ON audit (subject, id);
CREATE INDEX audit_actor ON audit (actor, id);
CREATE INDEX audit_at ON audit (at);

CREATE TABLE slots (
    name        TEXT COLLATE "C" PRIMARY KEY,
    owner       TEXT COLLATE "C" NOT NULL,
    lease_until BIGINT NOT NULL
);

CREATE TABLE wishes (
    id   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    repo TEXT COLLATE "C" NOT NULL,
    unit TEXT COLLATE "C" NOT NULL,
    UNIQUE (repo, unit)
);
CREATE INDEX wishes_unit ON wishes (unit);

CREATE TABLE state (
    key  TEXT COLLATE "C" PRIMARY KEY,
    data BYTEA NOT NULL
);
