package act

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/prtext"
)

// Reply answers a command given in a comment at a time, once for each source. A command
// that came another way has no comment to answer to.
func (a *Actor) Reply(ctx context.Context, r *branch.Repository, source string, at time.Time, to, command, text string) error {
	return a.replyOnce(ctx, r, source, at, to, command, text, func(string) bool { return true })
}

// replyForCommand is Reply for a command of which it isn't known when it was given.
func (a *Actor) replyForCommand(ctx context.Context, r *branch.Repository, source, to, command, text string) error {
	return a.Reply(ctx, r, source, time.Time{}, to, command, text)
}

// ReplyAgain is Reply for a further answer to a command: once for each text.
func (a *Actor) ReplyAgain(ctx context.Context, r *branch.Repository, source string, at time.Time, to, command, text string) error {
	return a.replyOnce(ctx, r, source, at, to, command, text, func(answer string) bool {
		_, id, _ := parseSource(source)
		return strings.TrimSpace(answer) == strings.TrimSpace(r.Words(prtext.Reply(to, command, text, id)))
	})
}

// replyForMember is Reply for one of several answers to a command: once for each text.
func (a *Actor) replyForMember(ctx context.Context, r *branch.Repository, source, to, command, text string) error {
	return a.ReplyAgain(ctx, r, source, time.Time{}, to, command, text)
}

// replyOnce answers unless the same was answered since.
func (a *Actor) replyOnce(ctx context.Context, r *branch.Repository, source string, since time.Time, to, command, text string,
	same func(answer string) bool) error {
	number, id, ok := parseSource(source)
	if !ok {
		return nil
	}
	comments, err := r.Forge.Comments(ctx, r.Name, number, since)
	if err != nil {
		return err
	}
	for _, k := range comments {
		if r.HasWritten(&k) && prtext.IsReplyTo(k.Body, id) && same(k.Body) {
			return nil
		}
	}
	_, err = r.Forge.CreateComment(ctx, r.Name, number, r.Words(prtext.Reply(to, command, text, id)))
	return err
}

// maxCommands bounds the commands of one comment that have a source of their own.
const maxCommands = 64

// CommentSource names a comment that commands were given in.
func CommentSource(repo string, number int, comment int64) string {
	return fmt.Sprintf("comment %d on #%d of %s", comment, number, repo)
}

// CommandSource names one of its commands, from 0.
func CommandSource(repo string, number int, comment int64, command int) string {
	return fmt.Sprintf("command %d of %s", command%maxCommands, CommentSource(repo, number, comment))
}

var sourcePattern = regexp.MustCompile(`^(?:command (\d+) of )?comment (\d+) on #(\d+) of `)

// parseSource reads what Source and CommandSource wrote; false for anything else. The
// id tells a comment's own answer from the later outcomes of its commands, which
// are answered apart: those are below zero.
func parseSource(s string) (number int, id int64, ok bool) {
	m := sourcePattern.FindStringSubmatch(s)
	if m == nil {
		return 0, 0, false
	}
	id, err := strconv.ParseInt(m[2], 10, 64)
	if err != nil {
		return 0, 0, false
	}
	if number, err = strconv.Atoi(m[3]); err != nil {
		return 0, 0, false
	}
	if m[1] == "" {
		return number, id, true
	}
	command, err := strconv.ParseInt(m[1], 10, 64)
	return number, -(id*maxCommands + command) - 1, err == nil
}
