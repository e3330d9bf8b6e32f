package forge

import "context"

// RepositoryNumberer is a forge that numbers its repositories. All drivers do.
type RepositoryNumberer interface {
	// RepositoryNumber reads the number of the repository that has a name now, or had it last where
	// none has it. It stays when a repository is renamed or moved, webhooks carry it, and no other
	// gets it. One that is made under a name that was given up has another.
	RepositoryNumber(ctx context.Context, r Repo) (int64, error)
}
