package people

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"regexp"
	"strings"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
)

// ImageSource says what an image says that it was built from: the address of a repository and a
// revision, empty where it doesn't say. Its errors are shown to people, and have the same words
// each time. *registry.Images of internal/controller is one.
type ImageSource interface {
	// CanRead says whether an image is in a registry that may be read.
	CanRead(image string) bool
	Source(ctx context.Context, image string) (source, revision string, err error)
}

// sourceCommit is a revision that can be no option and no other name of something.
var sourceCommit = regexp.MustCompile(`^[0-9a-f]{7,64}$`)

// imageCommits reads the new commits in the application's own repository from the labels of the
// images, those of before and those of a release. The images' registries may be read, and their
// commits are of a repository of the tracked one's owner on the same forge, as with spec.source.
// Other images aren't mentioned.
func (ag *AuthorGatherer) imageCommits(ctx context.Context, c *branch.ComponentBasis, env, release string) []ApplicationCommits {
	if ag.Images == nil {
		return nil
	}
	var out []ApplicationCommits
	seen := map[string]bool{}
	for _, pair := range changedImages(c, env, release) {
		if !ag.Images.CanRead(pair[0]) || !ag.Images.CanRead(pair[1]) {
			continue
		}
		from, err := ag.readImage(ctx, c.Snapshot.Repo, pair[0])
		to, toErr := ag.readImage(ctx, c.Snapshot.Repo, pair[1])
		if err = cmp.Or(err, toErr); err != nil {
			out = append(out, ApplicationCommits{Image: pair[1], Err: err})
			continue
		}
		if from.commit == "" || to.commit == "" || !strings.EqualFold(from.repository.Name, to.repository.Name) ||
			from.commit == to.commit {
			continue
		}
		if key := from.commit + to.commit; !seen[key] { // several images are built from one commit
			seen[key] = true
			out = append(out, ag.compareApplication(ctx, c.Snapshot.Repo, to.repository, from.commit, to.commit))
		}
	}
	return out
}

// builtImage is what an image was built from; its zero value: nothing that may be read.
type builtImage struct {
	repository forge.Repo
	commit     string
}

func (ag *AuthorGatherer) readImage(ctx context.Context, r *branch.Repository, image string) (builtImage, error) {
	source, commit, err := ag.Images.Source(ctx, image)
	if err != nil {
		return builtImage{}, err
	}
	repository, ok := parseSourceAddress(webAddress(r), source)
	if commit = strings.ToLower(commit); !ok || !sourceCommit.MatchString(commit) || !strings.EqualFold(repository.Owner, r.Name.Owner) {
		return builtImage{}, nil
	}
	return builtImage{repository, commit}, nil
}

// changedImages are the images that a release changes in an environment, before and after, in
// the order of its fields, as they are pulled: by digest where there is one.
func changedImages(c *branch.ComponentBasis, env, release string) [][2]string {
	to := c.Env(env)
	if to == nil || !to.Release.OK {
		return nil
	}
	type place struct{ file, name string }
	before := map[place]string{}
	for _, i := range c.Contents[to.Release.Value.ID].Images() {
		before[place{i.File, i.Name}] = imageReference(cmp.Or(i.NewName, i.Name), i.Tag, i.Digest)
	}
	var out [][2]string
	for _, i := range c.Contents[release].Images() {
		was, is := before[place{i.File, i.Name}], imageReference(cmp.Or(i.NewName, i.Name), i.Tag, i.Digest)
		if was == "" || is == "" || was == is {
			continue
		}
		if out = append(out, [2]string{was, is}); len(out) == maxApplicationRanges {
			break
		}
	}
	return out
}

// imageReference names an image; empty where it is pinned by nothing.
func imageReference(name, tag, digest string) string {
	switch {
	case digest != "":
		return name + "@" + digest
	case tag != "":
		return name + ":" + tag
	}
	return ""
}

// webAddress is where the forge has its repositories' pages, without a slash behind it.
func webAddress(r *branch.Repository) string {
	page := r.Forge.CommitURL(r.Name, "0")
	base, _, ok := strings.Cut(page, "/"+r.Name.String()+"/")
	if !ok {
		return ""
	}
	return base
}

// errNoSource is why an address names no repository of a forge.
var errNoSource = errors.New("it is no address of a repository")

// parseSourceAddress finds the repository of a forge that an address is about: of its page, or
// of what is below it, or to clone it, also by SSH (git@host:owner/name.git).
func parseSourceAddress(forgeAddress, address string) (forge.Repo, bool) {
	base, err := url.Parse(forgeAddress)
	if err != nil || base.Host == "" {
		return forge.Repo{}, false
	}
	host, path, err := splitSource(strings.TrimPrefix(address, "git+"))
	if err != nil || !strings.EqualFold(host, base.Hostname()) {
		return forge.Repo{}, false
	}
	rest, below := strings.CutPrefix("/"+strings.TrimLeft(path, "/"), strings.TrimRight(base.Path, "/")+"/")
	parts := strings.Split(strings.Trim(rest, "/"), "/")
	if !below || len(parts) < 2 {
		return forge.Repo{}, false
	}
	r := forge.Repo{Owner: parts[0], Name: strings.TrimSuffix(parts[1], ".git")}
	return r, sourceName.MatchString(r.Owner) && sourceName.MatchString(r.Name)
}

// sourceName is a name that forges take for an owner or a repository.
var sourceName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`)

// splitSource takes the host and the path out of an address.
func splitSource(address string) (host, path string, err error) {
	if !strings.Contains(address, "://") {
		who, path, ok := strings.Cut(address, ":") // as git takes it: user@host:path
		_, host, at := strings.Cut(who, "@")
		if !ok || !at || strings.ContainsAny(who, "/") {
			return "", "", errNoSource
		}
		return host, path, nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", "", errNoSource
	}
	switch u.Scheme {
	case "https", "http", "ssh", "git":
		return u.Hostname(), u.Path, nil
	}
	return "", "", errNoSource
}
