package store

import (
	"cmp"
	"context"
	"fmt"
	"strings"
)

// RecordKey names one record: a small value of a kind that package record declares, about a
// repository, one of its pull requests, or something with a name.
type RecordKey struct {
	Kind string // never empty
	Repo string // the repository's ID; empty where it is about none
	Pull int    // 0: it is about no pull request
	Name string // what else tells it from its neighbours, such as a branch; may be empty
}

// String is the key for logs and errors.
func (r RecordKey) String() string {
	text := r.Kind
	if r.Repo != "" {
		text += " of " + r.Repo
	}
	if r.Pull != 0 {
		text += fmt.Sprintf("#%d", r.Pull)
	}
	if r.Name != "" {
		text += " (" + r.Name + ")"
	}
	return text
}

// Record is a record with its value.
type Record struct {
	RecordKey
	Data []byte
}

// RecordFilter chooses records.
type RecordFilter struct {
	Kinds      []string // none: of every kind
	Repo       string   // empty: of every repository
	Pull       int      // 0: whatever pull request they are about
	NamePrefix string
}

func (rf *RecordFilter) where() (w whereClause) {
	addIn(&w, "kind", rf.Kinds)
	addEquals(&w, "repo", rf.Repo)
	addEquals(&w, "pull", rf.Pull)
	w.addPrefix("name", rf.NamePrefix)
	return w
}

// PutRecord stores a record's value; one that is there is replaced.
func (s *Store) PutRecord(ctx context.Context, key RecordKey, data []byte) error {
	return s.Tx(ctx, "putRecord", func(tx *Tx) error { return tx.PutRecord(ctx, key, data) })
}

// AddRecord stores a record that isn't there yet; false, and nothing changes, where one is. Of several
// processes that add it at once, one does.
func (s *Store) AddRecord(ctx context.Context, key RecordKey, data []byte) (added bool, err error) {
	return txWithResult(ctx, s, "addRecord", func(tx *Tx) (bool, error) { return tx.AddRecord(ctx, key, data) })
}

// DeleteRecord forgets a record; one that isn't there is success.
func (s *Store) DeleteRecord(ctx context.Context, key RecordKey) error {
	return s.Tx(ctx, "deleteRecord", func(tx *Tx) error { return tx.DeleteRecord(ctx, key) })
}

// PutRecord is Store.PutRecord.
func (t *Tx) PutRecord(ctx context.Context, key RecordKey, data []byte) error {
	_, err := t.insertRecord(ctx, key, data, `DO UPDATE SET data = excluded.data WHERE excluded.data <> records.data`)
	return err
}

// AddRecord is Store.AddRecord.
func (t *Tx) AddRecord(ctx context.Context, key RecordKey, data []byte) (added bool, err error) {
	return t.insertRecord(ctx, key, data, `DO NOTHING`)
}

// insertRecord stores a record; onConflict is what the statement does where one is there. changed says whether
// anything was written.
func (t *Tx) insertRecord(ctx context.Context, key RecordKey, data []byte, onConflict string) (changed bool, err error) {
	err = cmp.Or(checkKey("its kind", key.Kind), checkNames("its repository", key.Repo, "its name", key.Name), checkData(data))
	if err == nil {
		if data == nil {
			data = []byte{} // nil is NULL to a database
		}
		var rows int64
		rows, err = t.db.exec(ctx, `INSERT INTO records (kind, repo, pull, name, data) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (kind, repo, pull, name) `+onConflict, key.Kind, key.Repo, key.Pull, key.Name, data)
		changed = rows > 0
	}
	return changed, wrapError(err, "store the record %.200s", key)
}

// DeleteRecord is Store.DeleteRecord.
func (t *Tx) DeleteRecord(ctx context.Context, key RecordKey) error {
	_, err := t.db.exec(ctx, `DELETE FROM records WHERE kind = $1 AND repo = $2 AND pull = $3 AND name = $4`,
		key.Kind, key.Repo, key.Pull, key.Name)
	return wrapError(err, "forget the record %s", key)
}

// DeletePullRecords forgets the records of some kinds about a pull request.
func (t *Tx) DeletePullRecords(ctx context.Context, repo string, pull int, kinds ...string) error {
	if len(kinds) == 0 || pull == 0 {
		return nil
	}
	var w whereClause
	addIn(&w, "kind", kinds)
	w.addCondition("repo = $%d", repo)
	w.addCondition("pull = $%d", pull)
	_, err := t.db.exec(ctx, `DELETE FROM records`+w.String(), w.args...)
	return wrapError(err, "forget what is on record of %s#%d", repo, pull)
}

// Record is a record's value; false when there is none.
func (q queries) Record(ctx context.Context, k RecordKey) ([]byte, bool, error) {
	data, ok, err := queryOne(ctx, q.db, oneColumn[[]byte],
		`SELECT data FROM records WHERE kind = $1 AND repo = $2 AND pull = $3 AND name = $4`, k.Kind, k.Repo, k.Pull, k.Name)
	return data, ok, wrapError(err, "read the record %s", k)
}

// Records are the records that the filter chooses, sorted by kind, repository, pull request and name.
func (q queries) Records(ctx context.Context, f RecordFilter) ([]Record, error) {
	w := f.where()
	all, err := queryAll(ctx, q.db, func(e *Record) []any { return []any{&e.Kind, &e.Repo, &e.Pull, &e.Name, &e.Data} },
		`SELECT kind, repo, pull, name, data FROM records`+w.String()+` ORDER BY kind, repo, pull, name`, w.args...)
	return all, wrapError(err, "read the records %s of %s", strings.Join(f.Kinds, ", "), f.Repo)
}
