package story_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/storetest"
)

var killCount = flag.Int("kills", 0, "how often a replica is killed; 0: 1,000 times with -long, and else a few")

// TestReplicasKilled runs three replicas on one PostgreSQL while releases flow through several
// repositories, and kills one after the other, and PostgreSQL with them. Whatever was acknowledged
// takes effect, everything comes to its end, and nothing happens twice.
func TestReplicasKilled(t *testing.T) {
	skipUnderRace(t) // a server takes seconds to start then, and is killed before
	kills := *killCount
	switch {
	case kills > 0:
	case *runLong:
		kills = 1000
	default:
		kills = 12
	}
	t.Logf("the seed is %d", *seed)
	began := time.Now()
	r := startReplicas(t, *seed)
	done := make(chan struct{})
	var acting sync.WaitGroup
	acting.Go(func() { r.actUntil(done, rand.New(rand.NewPCG(*seed, 2))) })
	t.Cleanup(func() {
		close(done)
		acting.Wait()
	})
	r.awaitCommentable()
	k := &killer{replicaRun: r, random: rand.New(rand.NewPCG(*seed, 1)), wanted: kills}
	defer func() { r.logFigures(time.Since(began), k) }()
	k.killReplicas()
	r.awaitEnd()
	r.checkReplicated()
	r.checkDeliveries()
}

// replicaPatience is how long what must happen may take: a killed replica's leases,
// several times, on a busy machine.
const replicaPatience = 2 * time.Minute

// await waits until a condition holds, and ends the test where it doesn't.
func (r *replicaRun) await(what func() error) {
	r.t.Helper()
	deadline := time.Now().Add(replicaPatience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for err := what(); err != nil; err = what() {
		if time.Now().After(deadline) {
			r.t.Fatal(err)
		}
		<-tick.C
	}
}

// deathChooser says at which of its writes a server kills itself, and counts deaths.
type deathChooser struct {
	mu     sync.Mutex
	random *rand.Rand
	calm   bool // nobody kills itself any more
	deaths int
	ends   int
}

func newDeathChooser(seed uint64) *deathChooser {
	return &deathChooser{random: rand.New(rand.NewPCG(seed, 3)), calm: true}
}

// choosePoint is empty for a server that doesn't kill itself.
func (d *deathChooser) choosePoint() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calm || d.random.IntN(3) > 0 {
		return ""
	}
	return fmt.Sprintf("%s#%d %s", anyWrite, 1+d.random.IntN(6), pick(d.random, "before", "after"))
}

func (d *deathChooser) setCalm(calm bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calm = calm
}

func (d *deathChooser) countDeath() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deaths++
}

// countEnd counts a server that ended by itself, which is no kill.
func (d *deathChooser) countEnd() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ends++
	return true
}

// killed is how many servers were killed, and how many ended by themselves.
func (d *deathChooser) killed() (kills, ends int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.deaths - d.ends, d.ends
}

// killer kills servers at random.
type killer struct {
	*replicaRun
	random *rand.Rand
	wanted int

	witnessed    int // deliveries of which it was seen that they alone took effect
	inconclusive int
	checkedAt    int // kills
}

// checkEvery is how many kills there are from one check of what must never be to the next.
const checkEvery = 100

// killReplicas kills until there were as many kills as wanted.
func (k *killer) killReplicas() {
	k.deaths.setCalm(false)
	defer k.deaths.setCalm(true)
	for step := 0; ; step++ {
		kills, _ := k.deaths.killed()
		if kills >= k.wanted || k.t.Failed() {
			break
		}
		if kills >= k.checkedAt+checkEvery {
			k.checkedAt = kills
			k.checkReplicated()
			k.t.Logf("%s", k.describe(kills))
		}
		switch n := k.random.IntN(100); {
		case step%25 == 4:
			k.restartDatabase()
		case step%40 == 8:
			k.killWhoAcknowledges()
		case n < 17:
			k.killSome(2)
		case n < 22:
			k.killSome(replicaCount)
		default:
			k.killSome(1)
		}
		pause := time.Duration(150+k.random.IntN(1100)) * time.Millisecond
		if step%10 == 9 {
			pause += replicaLease // what was blocked goes on, to be killed somewhere else
		}
		<-time.After(pause)
	}
}

// killSome kills as many of the servers that run.
func (k *killer) killSome(n int) {
	for _, i := range k.random.Perm(len(k.replicas)) {
		if n > 0 && k.replicas[i].killServer() {
			n--
		}
	}
}

func (k *killer) restartDatabase() {
	k.database.restart(pick(k.random, syscall.SIGKILL, syscall.SIGKILL, syscall.SIGQUIT, syscall.SIGINT))
}

// commentedPull is the pull request that nobody merges.
func (r *replicaRun) commentedPull() (emulator.PullRequest, bool) {
	all := r.listPulls(commentedRepository, "prod")
	if len(all) == 0 {
		return emulator.PullRequest{}, false
	}
	return all[0], all[0].Open
}

func (r *replicaRun) awaitCommentable() {
	r.t.Helper()
	r.await(func() error {
		if _, ok := r.commentedPull(); !ok {
			return fmt.Errorf("%s has no pull request into prod", commentedRepository)
		}
		return nil
	})
}

// killWhoAcknowledges gives a command and kills the server that acknowledges its delivery
// at once, or the database. No server is started meanwhile, and none looks by itself: what
// happens can only come from what was acknowledged.
func (k *killer) killWhoAcknowledges() {
	for _, one := range k.replicas {
		one.starting.Lock()
		defer one.starting.Unlock()
	}
	before := k.awaitSwept()
	accepted := make(chan int, 8)
	withDatabase := k.random.IntN(3) == 0
	k.relay.setOnAccepted(func(server int, event string, body []byte) {
		if event != "issue_comment" || !bytes.Contains(body, []byte(`"`+commentedRepository+`"`)) {
			return
		}
		if !withDatabase {
			k.replicas[server].killServer()
		}
		accepted <- server
	})
	defer k.relay.setOnAccepted(nil)
	p, _ := k.commentedPull()
	id, err := k.comment(commentedRepository, p.Number, pick(k.random, "/liftlock status", "/liftlock hold", "/liftlock unhold"))
	if err != nil {
		k.t.Error(err)
		return
	}
	select {
	case <-accepted:
	case <-time.After(5 * time.Second):
		k.inconclusive++ // its delivery was lost
		return
	}
	if withDatabase {
		k.restartDatabase()
	}
	deadline := time.Now().Add(replicaPatience)
	for !k.isAcknowledged(p.Number, id) {
		if !slices.ContainsFunc(k.replicas, func(one *replica) bool { return one.isRunning() }) {
			k.inconclusive++ // nobody is left who could
			return
		}
		if time.Now().After(deadline) {
			k.t.Errorf("a command on %s#%d was never taken, and its delivery was acknowledged", commentedRepository, p.Number)
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	if before == "" || k.sweepsOfCommented() != before {
		k.inconclusive++ // it may have come from what a start looks at
		return
	}
	k.witnessed++
}

// isAcknowledged says whether a command was answered by a reaction.
func (r *replicaRun) isAcknowledged(pull int, comment int64) bool {
	p, err := r.forge.Pull(commentedRepository, pull)
	if err != nil {
		return false
	}
	i := slices.IndexFunc(p.Comments, func(c emulator.Comment) bool { return c.ID == comment })
	return i >= 0 && len(p.Comments[i].Reactions) > 0
}

// sweepsOfCommented says which run of the commented repository's sweep was the last; empty
// while there is one to come, or under way.
func (r *replicaRun) sweepsOfCommented() string {
	for _, k := range storetest.PostgresKeys(r.t, r.database.address()) {
		if k.Name == "sweep:hub:"+commentedRepository {
			if k.Due || k.Running {
				return ""
			}
			return fmt.Sprint(k.Claims)
		}
	}
	return ""
}

// sweptWithin is how long it is waited for the sweeps of the servers that were started
// last.
const sweptWithin = 5 * time.Second

// awaitSwept waits until servers that were started have looked, and says as
// sweepsOfCommented does which sweep was the last.
func (k *killer) awaitSwept() string {
	<-time.After(sweptWithin / 2)
	deadline := time.Now().Add(sweptWithin / 2)
	for time.Now().Before(deadline) {
		if last := k.sweepsOfCommented(); last != "" {
			return last
		}
		<-time.After(50 * time.Millisecond)
	}
	return ""
}

func (r *replicaRun) logFigures(took time.Duration, k *killer) {
	kills, ends := r.deaths.killed()
	r.t.Logf("%s; %d servers ended by themselves because PostgreSQL was away; took %v", k.describe(kills), ends, took.Round(time.Second))
}

// describe gives the figures so far.
func (k *killer) describe(kills int) string {
	merged, reverts := 0, 0
	for _, f := range k.repositories {
		for _, p := range k.listPulls(f.name, "") {
			switch {
			case p.Merged && strings.HasPrefix(p.Title, "Revert "):
				reverts++
			case p.Merged:
				merged++
			}
		}
	}
	accepted, refused := k.relay.counts()
	k.mu.Lock()
	defer k.mu.Unlock()
	return fmt.Sprintf("%d kills, PostgreSQL killed %d times: %d promotions and %d reverts were merged, %d commands given; %d deliveries were acknowledged and %d were not; of %d it was seen that they took effect when who acknowledged them, or PostgreSQL, was killed at once (%d others say nothing)",
		kills, k.database.killCount(), merged, reverts, len(k.comments), accepted, refused, k.witnessed, k.inconclusive)
}
