package record

import (
	"strings"

	"github.com/liftlock/liftlock/internal/store"
)

// Subject is what a record is about.
type Subject[S any] interface {
	key() store.RecordKey
	of(key store.RecordKey) S
	describe() string
}

// Repository is a repository, by its ID.
type Repository string

func (r Repository) key() store.RecordKey            { return store.RecordKey{Repo: string(r)} }
func (Repository) of(key store.RecordKey) Repository { return Repository(key.Repo) }
func (Repository) describe() string                  { return "repository" }

// InRepository is something with a name in a repository, such as a branch.
type InRepository struct{ Repo, Name string }

// OfBranch is a branch of a repository.
func OfBranch(repo, branch string) InRepository { return InRepository{repo, branch} }

func (i InRepository) key() store.RecordKey { return store.RecordKey{Repo: i.Repo, Name: i.Name} }
func (InRepository) of(key store.RecordKey) InRepository {
	return InRepository{key.Repo, key.Name}
}
func (InRepository) describe() string { return "repository and name" }

// Pull is a pull request.
type Pull struct {
	Repo   string
	Number int
}

// OfPull is a pull request of a repository.
func OfPull(repo string, number int) Pull { return Pull{repo, number} }

func (p Pull) key() store.RecordKey      { return store.RecordKey{Repo: p.Repo, Pull: p.Number} }
func (Pull) of(key store.RecordKey) Pull { return Pull{key.Repo, key.Pull} }
func (Pull) describe() string            { return "pull request" }

// InPull is something with a name of a pull request, such as one of its comments.
type InPull struct {
	Pull
	Name string
}

func (i InPull) key() store.RecordKey {
	return store.RecordKey{Repo: i.Repo, Pull: i.Number, Name: i.Name}
}
func (InPull) of(key store.RecordKey) InPull { return InPull{Pull{key.Repo, key.Pull}, key.Name} }
func (InPull) describe() string              { return "pull request and name" }

// Unit is a component of a pipeline of a repository. It converts from and to promotion.Unit.
type Unit struct{ Repo, Pipeline, Component string }

// unitSeparator is in no pipeline's name.
const unitSeparator = "|"

func (u Unit) key() store.RecordKey {
	return store.RecordKey{Repo: u.Repo, Name: PipelinePrefix(u.Pipeline) + u.Component}
}

func (Unit) of(key store.RecordKey) Unit {
	pipeline, component, _ := strings.Cut(key.Name, unitSeparator)
	return Unit{key.Repo, pipeline, component}
}
func (Unit) describe() string { return "unit" }

// PipelinePrefix is what the names of the records about a pipeline's components begin with.
func PipelinePrefix(pipeline string) string { return pipeline + unitSeparator }

// InUnit is something with a name of a component, such as an environment.
type InUnit struct {
	Unit
	Name string
}

func (i InUnit) key() store.RecordKey {
	key := i.Unit.key()
	key.Name += unitSeparator + i.Name
	return key
}

func (InUnit) of(key store.RecordKey) InUnit {
	pipeline, rest, _ := strings.Cut(key.Name, unitSeparator)
	component, name, _ := strings.Cut(rest, unitSeparator)
	return InUnit{Unit{key.Repo, pipeline, component}, name}
}
func (InUnit) describe() string { return "unit and name" }

// Named is something of no repository, by its name.
type Named string

func (n Named) key() store.RecordKey       { return store.RecordKey{Name: string(n)} }
func (Named) of(key store.RecordKey) Named { return Named(key.Name) }
func (Named) describe() string             { return "name" }
