// Package record declares what Liftlock remembers beside its tables: small values, each of a kind
// that is declared once with its type, its owner and its lifetime.
//
// A kind is a package-level variable of the package that owns it:
//
//	var PullHolds = record.Declare[record.Pull, []promotion.Holding](record.Declaration{
//		Name: "pull-hold", Owner: "controller/facts", Lifetime: record.UntilDropped,
//		Doc: "The holds that commands set on a pull request.",
//	})
//
// Reading and writing then goes through it, in a transaction or outside of one:
//
//	holds, found, err := PullHolds.Get(ctx, tx, record.OfPull(repo, 12))
//	err = PullHolds.Put(ctx, tx, record.OfPull(repo, 12), holds)
//
// Values are kept as JSON. A value that can't be read counts as absent, unless the declaration says
// that it is an error. internal/store/record/README.md lists every kind; a test writes it from List.
package record
