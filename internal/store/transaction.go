package store

import (
	"context"
	"time"
)

// reader has the methods that only read. They are the store's and, inside a transaction,
// the transaction's, which sees its own writes.
type reader interface {
	// Arrivals is the unit's history in all its environments, newest first: the newest 50 in each.
	Arrivals(ctx context.Context, unit string) ([]Arrival, error)
	// OlderArrivals are, in each environment, the newest arrival of each of the releases, where that is
	// none of the unit's Arrivals, newest first.
	OlderArrivals(ctx context.Context, unit string, releases ...string) ([]Arrival, error)
	// ArrivalsVersion is 0 where nothing ever arrived; as long as it is the same, so are
	// the unit's Arrivals and its OlderArrivals, but for those that were pruned with the unit.
	ArrivalsVersion(ctx context.Context, unit string) (int64, error)
	// UnitsArrivedBy are the units of which a release arrived somewhere by a commit, sorted;
	// limit 0: 100, at most MaxUnitsArrivedBy.
	UnitsArrivedBy(ctx context.Context, commit string, limit int) ([]string, error)
	// AuditTrail are the entries that the filter chooses, newest first; limit 0: 100,
	// at most 1000.
	AuditTrail(ctx context.Context, f AuditFilter, limit int) ([]Audit, error)
	// Events are those that the filter chooses.
	Events(ctx context.Context, f EventFilter) ([]Event, error)
	// MergeQueue are the units that want to merge in the repository, in the order in
	// which they asked.
	MergeQueue(ctx context.Context, repo string) ([]string, error)
	// Observations are the unit's, sorted by environment and target.
	Observations(ctx context.Context, unit string) ([]Observation, error)
	// NewestPastPulls are, of each kind and in each of the environments, the newest one.
	NewestPastPulls(ctx context.Context, at PastPlace, environments ...string) ([]PastPull, error)
	// RestrainingPulls are the reverts, and the promotions that a person closed, of which
	// the release in short is one of those given; "" is one that isn't known.
	RestrainingPulls(ctx context.Context, at PastPlace, shorts ...string) ([]PastPull, error)
	// MergedPulls are the merged promotions of which the release in short is one of those given.
	MergedPulls(ctx context.Context, at PastPlace, shorts ...string) ([]PastPull, error)
	// PastPullsVersion is 0 where no pull request ever closed; as long as it is the same,
	// so is what NewestPastPulls, RestrainingPulls and MergedPulls answer of the component.
	PastPullsVersion(ctx context.Context, repo, pipeline, component string) (int64, error)
	// PullThatMoved is the newest merged promotion below a number on a branch of a component
	// in an environment that, as a whole, moved what is given in short; false when none is known.
	PullThatMoved(ctx context.Context, repo, pipeline, branchOf, environment, whole string, below int) (int, bool, error)
	// PendingCommands are the unit's commands that wait, in the order they were given.
	PendingCommands(ctx context.Context, unit string) ([]PendingCommand, error)
	// Promotions are those that the filter chooses, newest first.
	Promotions(ctx context.Context, f PromotionFilter) ([]Promotion, error)
	// Promotion is one; false when it isn't known.
	Promotion(ctx context.Context, id int64) (Promotion, bool, error)
	// PromotionByPull is a unit's with this pull request; false when it isn't known.
	PromotionByPull(ctx context.Context, unit, repo string, pull int) (Promotion, bool, error)
	// PullCursor is how far the repository's list of pull requests was read; zero
	// when it never was.
	PullCursor(ctx context.Context, repo string) (time.Time, error)
	// Pull is one pull request; false when it isn't known.
	Pull(ctx context.Context, repo string, number int) (Pull, bool, error)
	// OpenPulls are the repository's open pull requests whose branch begins with the
	// prefix, the newest number first.
	OpenPulls(ctx context.Context, repo, branchPrefix string) ([]Pull, error)
	// UnsettledPulls are the pull requests on branches that name a component that are
	// open, or of which what they moved was not worked out by the rules, the newest first.
	UnsettledPulls(ctx context.Context, repo, pipeline, component, rules string) ([]Pull, error)
	// PullsAt are the pull requests with a head, of every state, the newest first.
	PullsAt(ctx context.Context, repo, head string) ([]Pull, error)
	// PullsMergedAs are the pull requests that were merged as a commit.
	PullsMergedAs(ctx context.Context, repo, commit string) ([]Pull, error)
	// RevertPulls are the pull requests of a pipeline's reverts, of every state, that were
	// opened at or after a time.
	RevertPulls(ctx context.Context, repo, pipeline string, since time.Time) ([]Pull, error)
	// PullUsage counts the promotions of an author in a pipeline: those of other
	// components that are open, and all that were merged after a time.
	PullUsage(ctx context.Context, repo, pipeline, author, component, branchPrefix string, since time.Time) (PullUsage, error)
	// BrowserSession is the one with a token's digest, whether it is over or not; false when
	// there is none.
	BrowserSession(ctx context.Context, token string) (BrowserSession, bool, error)
	// BrowserSessions are those that are not over and were used at or after a time, of one
	// subject or, with "", of all, the newest first; at most 1000.
	BrowserSessions(ctx context.Context, subject string, usedSince time.Time) ([]BrowserSession, error)
	// CountSlots counts the slots that are taken of those whose names begin with a prefix.
	CountSlots(ctx context.Context, prefix string) (int, error)
	// Record is a record's value; false when there is none.
	Record(ctx context.Context, key RecordKey) ([]byte, bool, error)
	// HasDelivery says whether a forge's delivery was accepted and isn't forgotten yet.
	HasDelivery(ctx context.Context, forge, id string) (bool, error)
	// Records are the records that the filter chooses, sorted by kind, repository, pull request and name.
	Records(ctx context.Context, f RecordFilter) ([]Record, error)
	// Units are the units that the filter chooses, sorted by pipeline, component and key.
	Units(ctx context.Context, f UnitFilter) ([]Unit, error)
	// Unit is one unit; false when it isn't known.
	Unit(ctx context.Context, key string) (Unit, bool, error)
	// NextDue is when the next key can be claimed, by Options.Now; false when no key
	// has a time. The time of a key that is running is the end of its lease.
	NextDue(ctx context.Context) (time.Time, bool, error)
	// Depth counts the keys in the queue.
	Depth(ctx context.Context) (Depth, error)
}

// transaction is what a database does for a Tx, whose methods of nearly the same names
// say what each means. What is given was checked, and cut where it may be.
type transaction interface {
	reader // which sees what was written here

	putArrival(ctx context.Context, a Arrival) (seq int64, err error)
	withdrawArrivals(ctx context.Context, unit, environment string, above, below int64, at time.Time) error
	updateArrivalData(ctx context.Context, a Arrival) error
	putObservation(ctx context.Context, o Observation) error
	deleteObservation(ctx context.Context, unit, environment, target string) error
	putUnit(ctx context.Context, u Unit) (changed bool, err error)
	deleteUnit(ctx context.Context, key string) error
	putRecord(ctx context.Context, r Record) error
	deleteRecord(ctx context.Context, key RecordKey) error
	deletePullRecords(ctx context.Context, repo string, pull int, kinds []string) error

	// updatePromotion writes one with an ID; addPromotion one without, which is written
	// anew where its unit's pull request is known.
	updatePromotion(ctx context.Context, p Promotion) (known bool, err error)
	addPromotion(ctx context.Context, p Promotion) (id int64, err error)

	// putPull returns no version where what is there is newer, or, with another version
	// than the one that was seen, as new.
	putPull(ctx context.Context, p Pull, seen int64) (version int64, err error)
	setPullCursor(ctx context.Context, repo string, cursor time.Time) error
	// settlePull also forgets what was known to be moved; addPastPull adds what was.
	settlePull(ctx context.Context, p Pull, rules string) (settled bool, err error)
	addPastPull(ctx context.Context, m PastPull) error

	addPendingCommand(ctx context.Context, a PendingCommand) (id int64, err error)
	finishPendingCommand(ctx context.Context, id int64, at time.Time, outcome string) error
	bindPendingCommand(ctx context.Context, id int64, release string) error
	enqueueMerge(ctx context.Context, repo, unit string) error
	dequeueMerge(ctx context.Context, repo, unit string) error
	takeSlot(ctx context.Context, name, owner string, ttl time.Duration) (got bool, err error)
	freeSlot(ctx context.Context, name, owner string) error
	addBrowserSession(ctx context.Context, b BrowserSession) (added bool, err error)
	seeBrowserSession(ctx context.Context, id string, at time.Time) error
	rotateBrowserSession(ctx context.Context, id, token, next, role string) (rotated bool, err error)
	endBrowserSession(ctx context.Context, id string, at time.Time) (ended bool, err error)

	addDelivery(ctx context.Context, d Delivery) (fresh bool, err error)
	addAudit(ctx context.Context, a Audit) (added bool, err error)
	replaceAuditOutcome(ctx context.Context, source, was, outcome string) (replaced bool, err error)
	// lockEvents keeps other transactions from adding events until this one's end: a
	// reader that has seen number 8 could otherwise miss number 7, whose transaction
	// began earlier and commits later.
	lockEvents(ctx context.Context) error
	addEvent(ctx context.Context, e Event) (fresh bool, err error)
	// pruneRows deletes at most pruneAtOnce rows that are over.
	pruneRows(ctx context.Context, p prunableTable, before time.Time) (int64, error)

	wakeKeys(ctx context.Context, wakes []nextWake) error
	// databaseTime is the time by the database's clock.
	databaseTime(ctx context.Context) (time.Time, error)
	// claimDue also says what time it is by the database's clock.
	claimDue(ctx context.Context, owner string, n int, u Urgency, lease time.Duration) (claims []newClaim, now time.Time, err error)
	// finishRun returns when the key is due next.
	finishRun(ctx context.Context, f runFinish) (due int64, held bool, err error)
	// holdsClaim also locks the key's row, where the database has such locks.
	holdsClaim(ctx context.Context, owner string, c Claim) (bool, error)
	renewClaims(ctx context.Context, owner string, keys []string, lease time.Duration) (held []string, err error)
	// freeClaims makes due what an owner has claimed but for some keys.
	freeClaims(ctx context.Context, owner string, except []string) (freed int64, err error)
	// announce tells the other processes of something new once this commits.
	announce(ctx context.Context, subject string) error
}
