package sim

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/world/memoryforge"
)

// onForgeEvent is told of every change on the forge.
func (sim *Simulation) onForgeEvent(e memoryforge.Event) {
	switch e.Kind {
	case memoryforge.PushEvent:
		if e.Branch == trunk && e.Before != "" && e.After != "" {
			if e.Actor != bot && !sim.merging {
				note := func(before, after string) { sim.noteLandings(before, after, true) }
				if sim.resetting {
					note = sim.noteReset
				}
				note(e.Before, e.After)
			} else if !sim.merging {
				sim.judgeDiscovered(e.Before, e.After)
			}
			if sim.argocd != nil {
				sim.argocd.noticePush()
			}
		} else if e.Actor == bot && e.After != "" {
			sim.truth.pushed[e.Branch] = pushedHead{e.After, sim.now}
			delete(sim.truth.rewritten, statusOf(e.After)) // of another pull request with the same head it is said once more
			sim.judgePushed(e.Branch, e.Before, e.After)
		}
	case memoryforge.PullRequestEvent:
		if e.Action == "opened" && e.Actor == bot {
			sim.onOpened(e.Number)
		}
	}
	sim.deliver(e)
}

// deliver lets the forge report of a change: late, twice, out of order or not at all.
func (sim *Simulation) deliver(e memoryforge.Event) {
	name := map[memoryforge.Kind]string{
		memoryforge.PushEvent:        "push",
		memoryforge.PullRequestEvent: "pull_request",
		memoryforge.ReviewEvent:      "pull_request_review",
		memoryforge.CommentEvent:     "issue_comment",
		memoryforge.StatusEvent:      "status",
	}[e.Kind]
	head := map[string]any{"number": e.Number, "head": map[string]any{"ref": e.Branch, "sha": e.Commit},
		"base": map[string]any{"ref": trunk}}
	payload, err := json.Marshal(map[string]any{"action": e.Action, "number": e.Number, "pull_request": head,
		"issue": map[string]any{"number": e.Number, "pull_request": map[string]any{}},
		"ref":   "refs/heads/" + e.Branch, "before": orZeros(e.Before), "after": orZeros(e.After), "deleted": e.After == "" &&
			e.Kind == memoryforge.PushEvent, "sha": e.Commit, "state": e.Action,
		"repository": map[string]any{"full_name": sim.repo.String()}, "sender": map[string]any{"login": e.Actor}})
	sim.must(err)
	mac := hmac.New(sha256.New, []byte(webhookSecret))
	mac.Write(payload)
	signature := hex.EncodeToString(mac.Sum(nil))
	sim.deliveries++
	id := fmt.Sprint("delivery-", sim.deliveries)
	times := 1
	d := sim.between(20*time.Millisecond, 2*time.Second)
	if sim.faulty {
		switch sim.chance.IntN(25) {
		case 0:
			times = 0
		case 1:
			times = 2
		case 2:
			d = sim.between(time.Second, 10*time.Minute)
		}
	}
	if times == 0 || d > 2*time.Second {
		sim.muted = sim.now
	}
	for range times {
		sim.after(d, func() { sim.deliverTo(id, name, string(payload), signature, true) })
		d += sim.between(0, time.Minute)
	}
}

func orZeros(commit string) string {
	if commit == "" {
		return "0000000000000000000000000000000000000000"
	}
	return commit
}

// deliverTo brings a delivery to one of the servers.
func (sim *Simulation) deliverTo(id, name, payload, signature string, authentic bool) {
	var alive []*process
	for _, p := range sim.processes {
		if !p.dead && p.receiver != nil && !p.frozen.After(sim.now) {
			alive = append(alive, p)
		}
	}
	if len(alive) == 0 {
		return
	}
	p := alive[sim.chance.IntN(len(alive))]
	sim.spawn(p, func(ctx context.Context) {
		if p.accept(ctx, id, name, payload, signature) && !authentic {
			sim.broke("a forged delivery was accepted", "%s", id)
		}
	})
}
