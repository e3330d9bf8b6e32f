package git

import "context"

// engine answers what a repository's caches don't know. There are two: git's
// programs over a folder, and objects in memory, which tests and simulations run
// on. The checks of arguments and the caches are the repository's, so that both
// mean the same by the same call. Commits that a repository was asked for are
// there when an engine is asked.
type engine interface {
	// readObject gives an object with its content, findObject without; spec is an
	// id, or one with ^{tree} behind it. errMissing: there is none. ErrTooLarge:
	// past MaxFileSize.
	readObject(spec string) (object, error)
	findObject(spec string) (object, error)
	// readCommit gives a commit; errMissing where the id is of none.
	readCommit(sha string) (*CommitInfo, error)
	// readBlobs is Tree.ReadBlobs of a commit's objects; one that is missing is a
	// missingObjectError.
	readBlobs(ctx context.Context, commit string, ids []string, limit int64, do func(i int, data []byte, err error) error) error

	// listFiles calls do for each file, link and submodule of a commit below a
	// path ("": all), in git's order.
	listFiles(ctx context.Context, commit, path string, do func(FileEntry) error) error
	grepFiles(ctx context.Context, commit, expression string, globs []string) ([]string, error)

	isAncestor(ctx context.Context, ancestor, descendant string) (bool, error)
	findMergeBase(ctx context.Context, a, b string) (sha string, ok bool, err error)
	listCommits(ctx context.Context, q LogQuery) (shas []string, err error)

	// listChanges lists the differences between two commits' files; with a == "" all of b's.
	listChanges(ctx context.Context, a, b string) ([]FileChange, error)
	listChangedPaths(ctx context.Context, commits []CommitInfo) ([][]string, error)
	// writePatch is the unified diff of what differs. ErrTooLarge comes with its
	// beginning.
	writePatch(ctx context.Context, a, b string, o patchOptions) ([]byte, error)

	// markDamaged says that a read met what can't be.
	markDamaged()
	// closePrograms ends what runs; the next question starts it again.
	closePrograms()
}

// mirrorEngine is an engine that has refs of its own and talks to a remote. All
// that it changes, it changes under the mirror's lock.
type mirrorEngine interface {
	engine

	// fetchBranches brings the branches from where they were to where the remote's are, and
	// gives them; nil: they are to be read. Some are expected to be somewhere.
	fetchBranches(ctx context.Context, before, expected map[string]string) (map[string]string, error)
	// fetchRef brings one of the remote's refs under fetchedPrefix.
	fetchRef(ctx context.Context, ref string) error
	// isReplaced says that a commit which is there was brought by fetchRef, and may go at any
	// time as its ref has moved on.
	isReplaced(ctx context.Context, sha string) (bool, error)
	// fetchCommit brings a commit that is on none of the remote's refs, under no ref.
	fetchCommit(ctx context.Context, sha string) error
	// pushBranch does what Push says, at the remote alone, whose branches were last known to be heads.
	pushBranch(ctx context.Context, s PushSpec, heads map[string]string) error
	// listRemoteHeads are those of some branches that the remote has.
	listRemoteHeads(ctx context.Context, branches []string) (map[string]string, error)

	// listRemoteTags lists the names of the remote's tags.
	listRemoteTags(ctx context.Context) ([]string, error)

	// listRefs lists the refs below a prefix that ends in a slash.
	listRefs(ctx context.Context, prefix string) (map[string]string, error)
	// setRef moves a ref; an empty commit removes it.
	setRef(ctx context.Context, ref, sha string) error
	// restoreBranches makes branches that are not there.
	restoreBranches(ctx context.Context, heads map[string]string) error

	// writeCommit stores a commit that was checked and planned.
	writeCommit(ctx context.Context, s CommitSpec, base string, files []FileWrite) (string, error)
	maintain(ctx context.Context) error
}
