package forge

// Authorship is how far it is known that a comment says what its author wrote. Whoever may write to a
// repository edits others' comments on GitHub and Gitea; within the second in which one was written
// nothing that lists tell of it shows that.
type Authorship int

// The authorships.
const (
	// AuthorshipUnknown: the forge doesn't tell who edits comments, and the author hasn't confirmed it.
	AuthorshipUnknown Authorship = iota
	// AuthorsOwn: nobody has edited it.
	AuthorsOwn
	// ConfirmedByAuthor: the forge doesn't tell who edits comments, and the author has left the reaction
	// Confirmation on it.
	ConfirmedByAuthor
	// EditedLater: somebody edited it, whoever that was.
	EditedLater
)

// Confirmation is the reaction by which authors say that a comment is theirs.
const Confirmation = "+1"
