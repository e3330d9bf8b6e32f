package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations
var migrations embed.FS

// tables says how one database's tables are made.
type tables struct {
	dialect goose.Dialect
	dir     string
	shared  bool // several processes may start at once
}

var (
	sqliteTables   = tables{dialect: goose.DialectSQLite3, dir: "migrations/sqlite"}
	postgresTables = tables{dialect: goose.DialectPostgres, dir: "migrations/postgres", shared: true}
)

// schemaTable is where the applied migrations are counted.
const schemaTable = "liftlock_schema"

// migrateTables brings the tables to this version's state; ErrNewer when they are
// beyond it.
func migrateTables(ctx context.Context, db *sql.DB, t tables) error {
	dir, err := fs.Sub(migrations, t.dir)
	if err != nil {
		return err
	}
	counter, err := database.NewStore(t.dialect, schemaTable)
	if err != nil {
		return err
	}
	options := []goose.ProviderOption{goose.WithStore(counter), goose.WithDisableGlobalRegistry(true)}
	if t.shared {
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300)) // tries every second for 5 minutes
		if err != nil {
			return err
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	provider, err := goose.NewProvider("", db, dir, options...)
	if err != nil {
		return err
	}
	have, know, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read the version of its tables: %w", err)
	}
	if have > know {
		return fmt.Errorf("%w (its tables have version %d, this one knows %d)", ErrNewer, have, know)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("bring its tables from version %d to %d: %w", have, know, err)
	}
	return nil
}
