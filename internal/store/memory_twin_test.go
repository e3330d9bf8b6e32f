package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// draws are small values drawn at random, so that they meet.
type draws struct {
	t   *rapid.T
	now time.Time
}

func (d draws) name(what string, all ...string) string { return rapid.SampledFrom(all).Draw(d.t, what) }
func (d draws) unit() string                           { return d.name("unit", "u1", "u2", "u1", "u2", "") }
func (d draws) repo() string                           { return d.name("repo", "r1", "r1", "r2") }
func (d draws) pipeline() string                       { return d.name("pipeline", "shop", "shop", "ads") }
func (d draws) component() string                      { return d.name("component", "web", "api", "") }
func (d draws) env() string                            { return d.name("environment", "qa", "prod") }
func (d draws) release() string                        { return d.name("release", "aaa", "aab", "bbb", "") }
func (d draws) rules() string                          { return d.name("rules", "ra", "rb") }
func (d draws) branch() string {
	return d.name("branch", "liftlock/shop/qa/web", "liftlock/shop/qa/web2", "liftlock/shop/prod/api", "other", "")
}
func (d draws) login() string        { return d.name("login", "ada", "bot") }
func (d draws) source() string       { return d.name("source", "", "", "s1", "s2", "s3") }
func (d draws) number() int          { return rapid.IntRange(0, 4).Draw(d.t, "number") }
func (d draws) yes(what string) bool { return rapid.Bool().Draw(d.t, what) }
func (d draws) at() time.Time {
	if n := rapid.IntRange(-6, 5).Draw(d.t, "at"); n != 5 {
		return d.now.Add(time.Duration(n) * time.Second)
	}
	return time.Time{}
}
func (d draws) data() json.RawMessage {
	return json.RawMessage(d.name("data", "", `{"n":1}`, `{"n":2}`, "\xff"))
}
func (d draws) urgency() Urgency {
	return rapid.SampledFrom([]Urgency{Urgent, Normal, Background}).Draw(d.t, "urgency")
}
func (d draws) keys() []string {
	return rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 3).Draw(d.t, "keys")
}
func (d draws) pull() Pull {
	return Pull{Repo: d.repo(), Number: d.number(), Branch: d.branch(), State: "open", Pipeline: d.pipeline(), Environment: d.env(), Component: d.component(), Revert: d.yes("revert"), Author: d.login(),
		Head: d.release(), MergeCommit: d.release(), CreatedAt: d.at(), ClosedAt: d.at(), UpdatedAt: start.Add(time.Duration(d.number()/3) * time.Second), Data: d.data()}
}
func (d draws) promotion() Promotion {
	return Promotion{Unit: d.unit(), Repo: d.repo(), Pipeline: d.pipeline(), Component: d.component(), Environment: d.env(), Kind: "promotion", Release: d.release(), Pull: d.number(), State: d.name("state", "open", "merged"),
		CreatedAt: d.at(), Data: d.data()}
}
func (d draws) pastPull() PastPull {
	kind := rapid.SampledFrom([]PastKind{PastMerged, PastMerged, PastRevert, PastRefused, PastSuperseded}).Draw(d.t, "kind")
	return PastPull{Component: d.name("component", "web", "web", "api"), Pipeline: "shop", Environment: d.env(), BranchOf: "web", Kind: kind,
		Release: "full", Short: d.release(), Whole: d.release(), At: start.Add(time.Duration(d.number()/3) * time.Second), Commit: "c", By: d.login()}
}

// result is what a method returned.
type result struct {
	values []any
	err    error
}

func returned(err error, values ...any) result { return result{values, err} }

// Where drawWrite has the writes of pull requests.
const putsPull, settlesPull = 10, 11

// drawWrite draws one write of a transaction.
func drawWrite(d draws) func(tx *Tx) result {
	writes := []func() func(tx *Tx) result{
		func() func(tx *Tx) result {
			a := Arrival{Unit: d.unit(), Environment: d.env(), Release: d.release(), Commit: d.release(), At: d.at(), VerifiedAt: d.at(), Data: d.data()}
			return func(tx *Tx) result { seq, err := tx.PutArrival(ctx, a); return returned(err, seq) }
		},
		func() func(tx *Tx) result {
			a := Arrival{Unit: d.unit(), Environment: d.env(), Release: d.release(), Commit: d.release(), Data: d.data()}
			return func(tx *Tx) result { return returned(tx.UpdateArrivalData(ctx, a)) }
		},
		func() func(tx *Tx) result {
			e := Event{At: d.at(), Repo: d.repo(), Pipeline: d.pipeline(), Component: d.component(), Environment: d.env(), Pull: d.number(), Data: d.data(), IdempotencyKey: d.source()}
			return func(tx *Tx) result { n, err := tx.AddEvents(ctx, e, Event{}); return returned(err, n) }
		},
		func() func(tx *Tx) result {
			o := Observation{Unit: d.unit(), Environment: d.env(), Target: d.component(), Data: d.data()}
			return func(tx *Tx) result { return returned(tx.PutObservations(ctx, o)) }
		},
		func() func(tx *Tx) result {
			u, e, c := d.unit(), d.env(), d.component()
			return func(tx *Tx) result { return returned(tx.DeleteObservation(ctx, u, e, c)) }
		},
		func() func(tx *Tx) result {
			u := Unit{Key: d.unit(), Repo: d.repo(), Pipeline: d.pipeline(), Component: d.component(), Digest: d.release(), UpdatedAt: d.at(), Data: d.data()}
			return func(tx *Tx) result { return returned(tx.PutUnit(ctx, u)) }
		},
		func() func(tx *Tx) result {
			u := d.unit()
			return func(tx *Tx) result { return returned(tx.DeleteUnit(ctx, u)) }
		},
		func() func(tx *Tx) result {
			c := PendingCommand{Unit: d.unit(), Environment: d.env(), Verb: "retry", By: d.login(), ByID: int64(d.number()), Source: d.source(), At: d.at()}
			return func(tx *Tx) result { id, err := tx.PutPendingCommand(ctx, c); return returned(err, id) }
		},
		func() func(tx *Tx) result {
			id, release, finish := int64(d.number()), d.release(), d.yes("finish")
			return func(tx *Tx) result {
				if finish {
					return returned(tx.FinishPendingCommand(ctx, id, "done"))
				}
				return returned(tx.BindPendingCommand(ctx, id, release))
			}
		},
		func() func(tx *Tx) result {
			p := d.promotion()
			if d.yes("anew") {
				p.ID = int64(d.number())
			}
			return func(tx *Tx) result { id, err := tx.PutPromotion(ctx, p); return returned(err, id) }
		},
		func() func(tx *Tx) result {
			p, seen := d.pull(), int64(rapid.IntRange(-1, 3).Draw(d.t, "seen"))
			return func(tx *Tx) result { version, err := tx.putPull(ctx, p, seen); return returned(err, version) }
		},
		func() func(tx *Tx) result {
			repo, number, rules, moved := d.repo(), d.number(), d.rules(), []PastPull{d.pastPull(), d.pastPull()}
			return func(tx *Tx) result {
				p, ok, err := tx.Pull(ctx, repo, number)
				if err != nil || !ok {
					return returned(err, ok)
				}
				return returned(tx.SettlePull(ctx, p, rules, moved...))
			}
		},
		func() func(tx *Tx) result {
			repo, unit, queued, at := d.repo(), d.unit(), d.yes("queue"), d.at()
			return func(tx *Tx) result {
				if queued {
					return returned(errors.Join(tx.EnqueueMerge(ctx, repo, unit), tx.SetPullCursor(ctx, repo, at)))
				}
				return returned(tx.DequeueMerge(ctx, repo, unit))
			}
		},
		func() func(tx *Tx) result {
			key, data, keep := RecordKey{d.name("kind", "a/1", "a/2", "b", ""), d.repo(), d.number(), d.name("name", "", "a", "ab", "b")}, []byte(d.data()), d.yes("keep")
			return func(tx *Tx) result {
				if keep {
					return returned(tx.PutRecord(ctx, key, data))
				}
				return returned(tx.DeleteRecord(ctx, key))
			}
		},
		func() func(tx *Tx) result {
			repo, pull := d.repo(), d.number()
			return func(tx *Tx) result { return returned(tx.DeletePullRecords(ctx, repo, pull, "a/1", "b")) }
		},
		func() func(tx *Tx) result {
			u, keys, at, now := d.urgency(), d.keys(), d.at(), d.yes("now")
			return func(tx *Tx) result {
				if now {
					return returned(tx.WakeAs(ctx, u, keys...))
				}
				return returned(tx.WakeAt(ctx, at, keys...))
			}
		},
	}
	writes = append(writes, func() func(tx *Tx) result {
		u, e, n, at := d.unit(), d.env(), int64(d.number()), d.at()
		return func(tx *Tx) result { return returned(tx.WithdrawArrivals(ctx, u, e, n-2, n, at)) }
	})
	writes = append(writes, writes[putsPull], writes[settlesPull], writes[putsPull], writes[settlesPull]) // which must meet each other
	return writes[rapid.IntRange(0, len(writes)-1).Draw(d.t, "write")]()
}

// drawRead draws one question, for a store or a transaction.
func drawRead(d draws) func(r reader) result {
	repo, pipeline, component, env, unit, release, number := d.repo(), d.pipeline(), d.component(), d.env(), d.unit(), d.release(), d.number()
	place := PastPlace{Repo: repo, Pipeline: pipeline, Component: component, Rules: rapid.SampledFrom([][]string{nil, {"ra"}, {"ra", "rb"}}).Draw(d.t, "by rules")}
	since, branch, login, rules, about := d.at(), d.branch(), d.login(), d.rules(), d.name("about", "", "qa")
	questions := []func(r reader) result{
		func(r reader) result { v, err := r.Arrivals(ctx, unit); return returned(err, v) },
		func(r reader) result { v, err := r.OlderArrivals(ctx, unit, release, "r1"); return returned(err, v) },
		func(r reader) result { v, err := r.ArrivalsVersion(ctx, unit); return returned(err, v) },
		func(r reader) result { v, err := r.UnitsArrivedBy(ctx, release, number); return returned(err, v) },
		func(r reader) result {
			v, err := r.AuditTrail(ctx, AuditFilter{Actor: login, Subject: unit, Environment: about, SubjectPrefixes: []string{repo, unit}, Since: since}, number)
			return returned(err, v)
		},
		func(r reader) result { v, err := r.MergeQueue(ctx, repo); return returned(err, v) },
		func(r reader) result { v, err := r.Observations(ctx, unit); return returned(err, v) },
		func(r reader) result { v, err := r.NewestPastPulls(ctx, place, env, "qa"); return returned(err, v) },
		func(r reader) result {
			v, err := r.PastPullsVersion(ctx, place.Repo, place.Pipeline, place.Component)
			return returned(err, v)
		},
		func(r reader) result {
			v, err := r.RestrainingPulls(ctx, place, release, "aaa")
			return returned(err, v)
		},
		func(r reader) result { v, err := r.MergedPulls(ctx, place, release, "aaa"); return returned(err, v) },
		func(r reader) result {
			n, ok, err := r.PullThatMoved(ctx, repo, pipeline, component, env, release, number)
			return returned(err, n, ok)
		},
		func(r reader) result { v, err := r.PendingCommands(ctx, unit); return returned(err, v) },
		func(r reader) result { v, ok, err := r.Promotion(ctx, int64(number)); return returned(err, v, ok) },
		func(r reader) result {
			v, ok, err := r.PromotionByPull(ctx, unit, repo, number)
			return returned(err, v, ok)
		},
		func(r reader) result { v, err := r.PullCursor(ctx, repo); return returned(err, v) },
		func(r reader) result { v, err := r.CountSlots(ctx, "s"); return returned(err, v) },
		func(r reader) result { v, ok, err := r.BrowserSession(ctx, release); return returned(err, v, ok) },
		func(r reader) result { v, err := r.BrowserSessions(ctx, login, since); return returned(err, v) },
		func(r reader) result { v, ok, err := r.Pull(ctx, repo, number); return returned(err, v, ok) },
		func(r reader) result { v, err := r.OpenPulls(ctx, repo, branch); return returned(err, v) },
		func(r reader) result {
			v, err := r.UnsettledPulls(ctx, repo, pipeline, component, rules)
			return returned(err, v)
		},
		func(r reader) result { v, err := r.PullsAt(ctx, repo, release); return returned(err, v) },
		func(r reader) result { v, err := r.PullsMergedAs(ctx, repo, release); return returned(err, v) },
		func(r reader) result { v, err := r.RevertPulls(ctx, repo, pipeline, since); return returned(err, v) },
		func(r reader) result {
			v, err := r.PullUsage(ctx, repo, pipeline, login, component, branch, since)
			return returned(err, v)
		},
		func(r reader) result { v, ok, err := r.Record(ctx, recordKey("a/1")); return returned(err, v, ok) },
		func(r reader) result { v, err := r.Records(ctx, RecordFilter{Kind: "a/1"}); return returned(err, v) },
		func(r reader) result {
			v, err := r.Records(ctx, RecordFilter{Kind: "a/1", Repo: repo, NamePrefix: "a"})
			return returned(err, v)
		},
		func(r reader) result {
			v, err := r.Records(ctx, RecordFilter{Pull: number})
			return returned(err, v)
		},
		func(r reader) result {
			v, err := r.HasDelivery(ctx, "hub", fmt.Sprint(number))
			return returned(err, v)
		},
		func(r reader) result { v, ok, err := r.Unit(ctx, unit); return returned(err, v, ok) },
		func(r reader) result { v, at, err := r.NextDue(ctx); return returned(err, v, at) },
		func(r reader) result { v, err := r.Depth(ctx); return returned(err, v) },
	}
	for _, f := range []EventFilter{{}, {Newest: true, Limit: 2}, {Repo: repo, Pull: number, After: int64(number)}, {Pipeline: pipeline, Component: component, Newest: true, After: int64(number)},
		{Environment: env, Component: component}} {
		questions = append(questions, func(r reader) result { v, err := r.Events(ctx, f); return returned(err, v) })
	}
	for _, f := range []PromotionFilter{{}, {Repo: repo, Pulls: []int{number, 2, 2}}, {Pipeline: pipeline, Component: component, Environment: env}, {Release: "aa", Limit: 2}, {Unit: unit, Before: int64(number), States: []string{"open"}},
		{Repo: repo, Pull: number}} {
		questions = append(questions, func(r reader) result { v, err := r.Promotions(ctx, f); return returned(err, v) })
	}
	for _, f := range []UnitFilter{{}, {Repo: repo, Pipeline: pipeline}, {Contains: `"n":1`}, {WithoutData: true}} {
		questions = append(questions, func(r reader) result { v, err := r.Units(ctx, f); return returned(err, v) })
	}
	return func(r reader) (all result) {
		for _, read := range questions {
			a := read(r)
			all.values, all.err = append(all.values, a.values...), errors.Join(all.err, a.err)
		}
		return all
	}
}

// assertTwins fails unless two results are equal: what both refuse in the same words.
func assertTwins(t *rapid.T, what string, sqlite, memory result) {
	t.Helper()
	if (sqlite.err == nil) != (memory.err == nil) {
		t.Fatalf("%s: SQLite %v, in memory %v", what, sqlite.err, memory.err)
	}
	if errors.Is(sqlite.err, ErrInvalid) || errors.Is(sqlite.err, ErrLost) {
		if sqlite.err.Error() != memory.err.Error() {
			t.Fatalf("%s: SQLite %v, in memory %v", what, sqlite.err, memory.err)
		}
	}
	if diff := cmp.Diff(sqlite.values, memory.values, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%s: differs (-SQLite +memory):\n%s", what, diff)
	}
}

// TestMemoryTwin holds that a store in memory answers as one over SQLite does, whatever
// is done in whatever order.
func TestMemoryTwin(t *testing.T) {
	var sqlite, memory *testStore
	rapid.Check(t, func(rt *rapid.T) {
		dir := onSQLiteAddress(t)
		now := start
		o := Options{Now: func() time.Time { return now }}
		sqlite, memory = &testStore{Store: value(Open(ctx, dir, o))(t)}, &testStore{Store: OpenMemory(o)}
		defer sqlite.Close()
		defer memory.Close()
		both := func(what string, do func(s *Store) result) result {
			rt.Helper()
			a := do(sqlite.Store)
			assertTwins(rt, what, a, do(memory.Store))
			return a
		}
		claims, owners := []Claim{}, map[Claim]string{}
		rt.Repeat(map[string]func(*rapid.T){
			"write": func(rt *rapid.T) {
				d := draws{rt, now}
				var steps []func(tx *Tx) result
				for range rapid.IntRange(1, 5).Draw(rt, "writes") {
					steps = append(steps, drawWrite(d))
				}
				read, fails, of := drawRead(d), rapid.IntRange(0, 3).Draw(rt, "fails") == 0, ctx
				if len(claims) > 0 && d.yes("of a run") {
					c := rapid.SampledFrom(claims).Draw(rt, "run")
					of = WithClaim(ctx, owners[c], c)
				}
				both("transaction", func(s *Store) (all result) {
					err := s.Tx(of, "run", func(tx *Tx) error {
						for _, step := range append(steps, func(tx *Tx) result { return read(tx) }) {
							a := step(tx)
							all.values = append(append(all.values, a.err != nil), a.values...)
						}
						if fails {
							return errors.New("stop")
						}
						return nil
					})
					return returned(err, all.values...)
				})
			},
			"claim": func(rt *rapid.T) {
				owner, n, oldest := draws{rt, now}.login(), rapid.IntRange(1, 4).Draw(rt, "n"), rapid.Bool().Draw(rt, "oldest")
				a := both("claim", func(s *Store) result {
					if oldest {
						v, err := s.ClaimOldest(ctx, owner, n)
						return returned(err, v)
					}
					v, err := s.Claim(ctx, owner, n)
					return returned(err, v)
				})
				for _, c := range a.values[0].([]Claim) {
					claims, owners[c] = append(claims, c), owner
				}
			},
			"finish": func(rt *rapid.T) {
				if len(claims) == 0 {
					rt.Skip("nothing was claimed")
				}
				d := draws{rt, now}
				c := rapid.SampledFrom(claims).Draw(rt, "claim")
				out, keys := Outcome{Next: d.at(), NotBefore: d.at(), Failed: d.yes("failed"), PutOff: d.yes("put off"), Urgency: d.urgency()}, d.keys()
				both("finish", func(s *Store) result {
					return returned(s.Tx(ctx, "run", func(tx *Tx) error {
						return errors.Join(tx.Wake(ctx, keys...), tx.Finish(ctx, owners[c], c, out))
					}))
				})
			},
			"renew": func(rt *rapid.T) {
				d := draws{rt, now}
				owner, keys := d.name("owner", "ada", "bot", ""), d.keys()
				both("renew", func(s *Store) result { v, err := s.Renew(ctx, owner, keys); return returned(err, v) })
			},
			"free": func(rt *rapid.T) {
				d := draws{rt, now}
				owner, keys := d.name("owner", "ada", "bot", ""), d.keys()
				both("free", func(s *Store) result { v, err := s.FreeClaims(ctx, owner, keys); return returned(err, v) })
			},
			"one by one": func(rt *rapid.T) {
				d := draws{rt, now}
				delivery := Delivery{Forge: "hub", ID: fmt.Sprint(d.number()), ReceivedAt: d.at(), Keys: d.keys(), Urgency: d.urgency(), DueAt: d.at()}
				a := Audit{At: d.at(), Actor: d.login(), Subject: d.unit(), Environment: d.env(), Source: d.source(), Data: d.data()}
				name, owner, free, prune := d.name("slot", "s1", "s2"), d.login(), d.yes("free"), d.yes("prune")
				before, was := d.at(), d.name("was", "", "done")
				both("delivery, audit and slot", func(s *Store) result {
					fresh, err := s.Accept(ctx, delivery)
					got, err2 := s.TakeSlot(ctx, name, owner, 3*time.Second)
					if free {
						err = errors.Join(err, s.FreeSlot(ctx, name, owner))
					}
					pruned := 0
					if prune {
						n, err3 := s.Prune(ctx, before)
						pruned, err = n, errors.Join(err, err3)
					}
					added, err4 := s.ClaimAudit(ctx, a)
					replaced, err5 := s.ReplaceAuditOutcome(ctx, a.Source, was, "done")
					return returned(errors.Join(err, err2, err4, err5), fresh, got, pruned, added, replaced)
				})
			},
			"sessions": func(rt *rapid.T) {
				d := draws{rt, now}
				b := BrowserSession{ID: d.name("session", "1", "2", "3"), Token: d.release(), Attempt: d.name("attempt", "a1", "a2", "a3"), Subject: d.login(), Groups: d.keys(), StartedAt: d.at(), ExpiresAt: d.at()}
				other, at, next, end := d.name("other", "1", "2", "3"), d.at(), d.name("next", "aaa", "n1", "n2", "n3"), d.yes("end")
				both("sessions", func(s *Store) result {
					added, err := s.AddBrowserSession(ctx, b)
					err2 := s.SeeBrowserSession(ctx, other, at)
					ended := false
					if end {
						n, err3 := s.EndBrowserSession(ctx, other)
						ended, err = n, errors.Join(err, err3)
					}
					rotated := false
					if known, ok, _ := s.BrowserSession(ctx, next); !ok || known.ID == other {
						n, err3 := s.RotateBrowserSession(ctx, other, b.Token, next, "viewer")
						rotated, err = n, errors.Join(err, err3)
					}
					return returned(errors.Join(err, err2), added, ended, rotated)
				})
			},
			"time passes": func(rt *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 40_000_000).Draw(rt, "microseconds"))*time.Microsecond + 7)
			},
			"": func(rt *rapid.T) {
				read := drawRead(draws{rt, now})
				both("reads", func(s *Store) result { return read(s) })
			},
		})
	})
}

// TestMemoryKeepsItsOwn holds that nobody changes what is in a store in memory through
// what was given to it, or came from it.
func TestMemoryKeepsItsOwn(t *testing.T) {
	w := onMemory(t)
	data, state := json.RawMessage(`{"n":1}`), []byte("v")
	must(t, w.PutUnit(ctx, Unit{Key: "u", Data: data}))
	must(t, w.PutRecord(ctx, recordKey("k"), state))
	data[0], state[0] = 'x', 'x'
	found(w.Unit(ctx, "u"))(t).Data[0] = 'y'
	found(w.Record(ctx, recordKey("k")))(t)[0] = 'y'
	assertEqual(t, string(found(w.Unit(ctx, "u"))(t).Data), `{"n":1}`)
	assertEqual(t, string(found(w.Record(ctx, recordKey("k")))(t)), "v")
	fresh := OpenMemory(Options{})
	absent(fresh.Unit(ctx, "u"))(t)
	must(t, fresh.Close())
	if all := value(w.Units(ctx, UnitFilter{}))(t); !slices.ContainsFunc(all, func(u Unit) bool { return u.Key == "u" }) {
		t.Errorf("the units are %v", all)
	}
}
