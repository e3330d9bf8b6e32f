package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	tagsPrefix = "refs/tags/"
	// maxTagDepth bounds tags of tags.
	maxTagDepth = 5
)

// FetchTag brings the commit that the remote's tag names, and says which it is. Maintain forgets
// it after two weeks. ErrUnknownCommit when the tag names something else, ErrTooLarge as FetchRef has it.
func (m *Mirror) FetchTag(ctx context.Context, tag string) (sha string, err error) {
	if err := checkBranch(tag); err != nil {
		return "", err
	}
	unlock, err := m.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := m.engine.fetchRef(ctx, tagsPrefix+tag); err != nil {
		return "", err
	}
	refs, err := m.engine.listRefs(ctx, fetchedPrefix)
	if err != nil {
		return "", err
	}
	for name, at := range refs {
		if _, of, _ := strings.Cut(strings.TrimPrefix(name, fetchedPrefix), "/"); of == tagsPrefix+tag {
			sha = at
		}
	}
	for range maxTagDepth {
		o, err := m.engine.readObject(sha)
		switch {
		case errors.Is(err, errMissing), sha == "":
			return "", fmt.Errorf("the tag %s of %s: %w", tag, m.url, ErrUnknownCommit)
		case err != nil:
			return "", err
		case o.kind == "commit":
			return sha, nil
		case o.kind != "tag":
			return "", fmt.Errorf("the tag %s of %s names a %s: %w", tag, m.url, o.kind, ErrUnknownCommit)
		}
		first, _, _ := strings.Cut(string(o.data), "\n")
		sha = strings.TrimPrefix(first, "object ")
	}
	return "", fmt.Errorf("the tag %s of %s names tags alone: %w", tag, m.url, ErrUnknownCommit)
}

// RemoteTags asks the remote itself for the names of its tags, sorted. The mirror stays as it is.
func (m *Mirror) RemoteTags(ctx context.Context) ([]string, error) {
	tags, err := m.engine.listRemoteTags(ctx)
	slices.Sort(tags)
	return tags, err
}

func (mp *mirrorPrograms) listRemoteTags(ctx context.Context) ([]string, error) {
	out, err := mp.runRemote(ctx, "list the tags of "+mp.remote.url, "ls-remote", "--quiet", "--refs", "--tags", "--", mp.remote.url)
	if err != nil {
		return nil, err
	}
	var tags []string
	for line := range bytes.Lines(out) {
		_, name, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), "\t")
		if tag, ok := strings.CutPrefix(name, tagsPrefix); ok {
			tags = append(tags, tag)
		}
	}
	return tags, nil
}

func (m *memoryMirror) listRemoteTags(ctx context.Context) (tags []string, err error) {
	err = m.callRemote(ctx, "list-tags", func() error {
		tags = m.remote.tags()
		return nil
	})
	return tags, err
}
