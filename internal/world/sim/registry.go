package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/liftlock/liftlock/internal/controller"
	"github.com/liftlock/liftlock/internal/controller/facts/discovery"
	"github.com/liftlock/liftlock/internal/discover"
	"github.com/liftlock/liftlock/internal/discover/signature"
)

const (
	// discoverInterval is how often the service looks for new tags.
	discoverInterval = 3 * time.Minute
	// discoveredWithin is how long after a push a tag must have come in where nothing is in the way: two looks, and a run that
	// was put off.
	discoveredWithin = 3 * discoverInterval
	// registryAway is how often, of a thousand calls, the registry gives no answer in a rough world.
	registryAway = 100
)

// registry has the images of all components, of which a tag is always that of all their workloads. It has chance of its own.
type registry struct {
	chance *rand.Rand
	tags   map[string][]string      // by component, in the order in which they were pushed
	builds map[deployment]int       // how often a tag was pushed, in the source environment's target
	ever   map[deployment]bool      // that were there once, deleted or not
	signed map[deployment]int       // which of a tag's builds is signed, the last one that was; 0: none
	gone   map[deployment]time.Time // when a tag was deleted
	pushed map[deployment]time.Time // when it was pushed first
}

// registryDeeds are what happens beside the other deeds where new tags come in by themselves.
var registryDeeds = []deed{
	{"push a tag", 40, (*Simulation).pushTag},
	{"push a tag again", 4, (*Simulation).overwriteTag},
	{"delete a tag", 6, (*Simulation).deleteTag},
}

func (sim *Simulation) beginRegistry() {
	sim.registry = registry{chance: rand.New(rand.NewPCG(uint64(sim.Seed), 14)), tags: map[string][]string{}, builds: map[deployment]int{},
		ever: map[deployment]bool{}, signed: map[deployment]int{}, gone: map[deployment]time.Time{}, pushed: map[deployment]time.Time{}}
	if !sim.scenario.discovers {
		return
	}
	for i := range sim.scenario.environments {
		sim.scenario.environments[i].approvals = 0 // who made what comes in by itself isn't known, which keeps approvals waiting
	}
	for _, c := range sim.scenario.components {
		sim.addTag(c, firstTag)
	}
}

// sourceOf is where a component's releases come from.
func (sim *Simulation) sourceOf(component string) target {
	return target{component, sim.scenario.environments[0].name}
}

func (sim *Simulation) addTag(component, tag string) {
	r, d := &sim.registry, deployment{sim.sourceOf(component), tag}
	if !slices.Contains(r.tags[component], tag) {
		r.tags[component] = append(r.tags[component], tag)
	}
	if r.builds[d]++; r.chance.IntN(4) > 0 {
		r.signed[d] = r.builds[d]
	}
	if !r.ever[d] {
		r.pushed[d] = sim.now
	}
	r.ever[d] = true
	delete(r.gone, d)
}

// pushTag has a build push the next release.
func (sim *Simulation) pushTag(r *rand.Rand) {
	sim.pushTagOf(pick(r, sim.scenario.components), r, false)
}

func (sim *Simulation) pushTagOf(component string, r *rand.Rand, good bool) (tag string) {
	sim.planned++
	tag = fmt.Sprint(sim.planned)
	sim.drawQuality(component, tag, func(string) quality {
		if !good && r.IntN(12) == 0 {
			return quality(1 + r.IntN(2))
		}
		return well
	})
	sim.report("a build pushes %s of %s%s", tag, component, sim.describeQuality(component, tag))
	sim.addTag(component, tag)
	return tag
}

// overwriteTag has a build push a tag again that is there: that is nothing new.
func (sim *Simulation) overwriteTag(r *rand.Rand) {
	c := pick(r, sim.scenario.components)
	if tags := sim.registry.tags[c]; len(tags) > 0 {
		tag := pick(r, tags)
		sim.report("a build pushes %s of %s again", tag, c)
		sim.addTag(c, tag)
	}
}

// deleteTag removes a tag, often the newest.
func (sim *Simulation) deleteTag(r *rand.Rand) {
	c := pick(r, sim.scenario.components)
	tags := sim.registry.tags[c]
	if len(tags) == 0 {
		return
	}
	i := len(tags) - 1
	if r.IntN(2) == 0 {
		i = r.IntN(len(tags))
	}
	sim.report("%s of %s is deleted in the registry", tags[i], c)
	sim.registry.gone[deployment{sim.sourceOf(c), tags[i]}] = sim.now
	sim.registry.tags[c] = slices.Delete(slices.Clone(tags), i, i+1)
}

// versions is the registry as a process reads it; nil where nothing comes in by itself.
func (sim *Simulation) versions() controller.Versions {
	if !sim.scenario.discovers {
		return nil
	}
	return func(time.Duration) discovery.Source {
		return &registryReader{sim, map[string][]string{}, map[string]bool{}}
	}
}

// registryReader reads the registry for one look. All workloads' images are pushed at one moment, and so it sees them.
type registryReader struct {
	sim  *Simulation
	tags map[string][]string // by component, as they were at first
	away map[string]bool     // likewise: there was no answer
}

// errRegistryAway passes by itself.
type errRegistryAway struct{}

func (errRegistryAway) Error() string   { return "the registry gave no answer" }
func (errRegistryAway) IsPassing() bool { return true }

// find gives the component that an image is of.
func (rr *registryReader) find(ctx context.Context, image string) (string, error) {
	sim := rr.sim
	if t := taskOf(ctx); t != nil {
		if t.dead {
			return "", errKilled
		}
		sim.now = sim.now.Add(time.Duration(1+sim.registry.chance.IntN(9)) * time.Millisecond)
		if sim.yield(t); t.dead {
			return "", errKilled
		}
	}
	for _, c := range sim.scenario.components {
		for i := range workloads {
			if image == "registry.example/"+workload(c, i) {
				return c, rr.readOnce(c)
			}
		}
	}
	return "", errors.New("there is no such image")
}

// readOnce reads a component's tags, unless that was done.
func (rr *registryReader) readOnce(component string) error {
	sim := rr.sim
	if _, is := rr.tags[component]; !is {
		rr.tags[component] = slices.Clone(sim.registry.tags[component])
		rr.away[component] = sim.faulty && sim.faults.before > 0 && sim.registry.chance.IntN(1000) < registryAway
	}
	if rr.away[component] {
		return errRegistryAway{}
	}
	return nil
}

// ListTags lists the tags of an image, as they are now.
func (rr *registryReader) ListTags(ctx context.Context, image string) ([]string, error) {
	c, err := rr.find(ctx, image)
	return rr.tags[c], err
}

// ReadDetails says of each tag what there is.
func (rr *registryReader) ReadDetails(ctx context.Context, image string, tags []string) (map[string]discover.Details, bool, error) {
	c, err := rr.find(ctx, image)
	if err != nil {
		return nil, false, err
	}
	out := map[string]discover.Details{}
	for _, tag := range tags {
		if slices.Contains(rr.tags[c], tag) {
			out[tag] = discover.Details{Digest: rr.sim.digestOf(c, tag)}
		} else {
			out[tag] = discover.Details{Err: "there is no such tag"}
		}
	}
	return out, true, nil
}

// ReadDigest gives the digest that a tag has now.
func (rr *registryReader) ReadDigest(ctx context.Context, image, tag string) (string, error) {
	c, err := rr.find(ctx, image)
	return rr.sim.digestOf(c, tag), err
}

// ListVersions lists no chart's: there are none.
func (rr *registryReader) ListVersions(context.Context, string) ([]string, error) {
	return nil, errors.New("there is no such chart")
}

// VerifySignatures says whether a digest is signed.
func (rr *registryReader) VerifySignatures(ctx context.Context, image, digest string, _ *signature.Policy) (discover.Signature, error) {
	c, err := rr.find(ctx, image)
	out := discover.Signature{Digest: digest, Why: "nobody signed it"}
	for d, build := range rr.sim.registry.signed {
		if d.target == rr.sim.sourceOf(c) && rr.sim.digestOfBuild(d, build) == digest {
			out.By, out.Why = "a build", ""
		}
	}
	return out, err
}

// verify is what the pipeline file says of signatures.
func (s *scenario) verify() string {
	if !s.signs {
		return ""
	}
	return ", verify: {cosign: {key: " + strconv.Quote(buildKey) + "}}"
}

// buildKey is a public key; whose signatures there are, the registry says.
const buildKey = `-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAO2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik=
-----END PUBLIC KEY-----
`

func (sim *Simulation) digestOf(component, tag string) string {
	d := deployment{sim.sourceOf(component), tag}
	return sim.digestOfBuild(d, sim.registry.builds[d])
}

// digestOfBuild is the digest of one of the builds of a tag.
func (sim *Simulation) digestOfBuild(d deployment, build int) string {
	return "sha256:" + hash(fmt.Sprint(d.target.component, d.tag, build))
}

// seenGoneAfter is how long a run may go on with a list of tags that it has read.
const seenGoneAfter = 2 * time.Minute

// judgeDiscovered judges a push to the trunk by the service itself, which is only ever what has come in.
func (sim *Simulation) judgeDiscovered(before, after string) {
	t := sim.current
	changed, err := sim.remote.Changed(sim.ctx, before, after)
	if err != nil || !sim.scenario.discovers {
		sim.broke(ruleUnmanaged, "%s pushed to %s: %v", bot, trunk, err)
		return
	}
	var known insight
	if t != nil {
		known = insightOf(t)
	}
	moved := map[string]target{}
	for _, c := range sim.scenario.components {
		p := sim.sourceOf(c)
		moved[sim.scenario.file(p)] = p
	}
	for _, ch := range changed {
		p, is := moved[ch.Path]
		if !is {
			sim.broke(ruleUnmanaged, "what came in by itself changed %s", ch.Path)
			return
		}
		sim.judgeDiscovery(known, p, before, after)
	}
	sim.noteLandings(before, after, true) // as what a person brings there
}

func (sim *Simulation) judgeDiscovery(known insight, p target, before, after string) {
	was, is := sim.tagAt(before, p), sim.tagAt(after, p)
	now := deployment{p, is}
	if sim.bytesAt(after, p) != sim.scenario.overlayWith(p.component, is) {
		sim.broke(ruleUnmanaged, "what came in by itself left %q in %s", sim.bytesAt(after, p), sim.scenario.file(p))
	}
	old, oldErr := strconv.Atoi(was)
	next, nextErr := strconv.Atoi(is)
	if oldErr != nil || nextErr != nil || next <= old {
		sim.broke(ruleDiscovered, "%s came into %s by itself over %s", is, p, was)
	}
	if gone, is := sim.registry.gone[now]; !sim.registry.ever[now] || is && sim.now.Sub(gone) > seenGoneAfter {
		sim.broke(ruleDiscovered, "%s came into %s by itself, which is in no registry", now.tag, p)
	}
	if sim.scenario.signs && sim.registry.signed[now] == 0 {
		sim.broke(ruleDiscovered, "%s came into %s by itself, and none of its builds is signed", is, p)
	}
	for _, c := range sim.truth.landings[p] {
		if c.tag == is {
			sim.broke(ruleDiscovered, "%s came into %s by itself again, from where it was withdrawn", is, p)
		}
	}
	for _, e := range sim.scenario.environments {
		if at := sim.keptOutSince(deployment{target{p.component, e.name}, is}); !at.IsZero() && known.began.After(at) {
			sim.broke(ruleDiscovered, "%s came into %s by itself, which was taken back from %s", is, p, e.name)
		}
	}
	if since := sim.truth.brokenSince; !since.IsZero() && known.lookedAt.After(since) {
		sim.broke(ruleDiscovered, "%s came into %s by itself with a pipeline file that is broken since %v", is, p, since.Sub(sim.began))
	}
	for _, h := range sim.truth.wideHolds {
		if h.covers(p) && !h.since.IsZero() && known.began.After(h.since) {
			sim.broke(ruleDiscovered, "%s came into %s by itself, but that the %s is on hold was acknowledged at %v", is, p, h.scope,
				h.since.Sub(sim.began))
		}
	}
	sim.truth.noteMaker(now, "a build")
}

// discoverCalmly has a build push a release while nobody interferes and no part is away: it comes in and goes on by itself.
func (sim *Simulation) discoverCalmly(last map[string]string) {
	c := sim.scenario.components[0]
	if !sim.scenario.discovers || sim.broken != nil || sim.truth.excused[c] != "" {
		return
	}
	if sim.tagAt(sim.head(), sim.sourceOf(c)) != last[c] {
		return
	}
	tag := sim.pushTagOf(c, rand.New(rand.NewPCG(uint64(sim.Seed), 15)), true)
	d := deployment{sim.sourceOf(c), tag}
	sim.registry.signed[d] = sim.registry.builds[d]
	sim.advance(sim.now.Add(discoveredWithin))
	if sim.tagAt(sim.head(), sim.sourceOf(c)) != tag {
		sim.broke(ruleMissed, "%s of %s was pushed %v ago, and hasn't come in", tag, c, discoveredWithin)
		return
	}
	last[c] = tag
	sim.advance(sim.now.Add(quietAfter + sim.limitedFor()))
	sim.judgeEnd(last)
}
