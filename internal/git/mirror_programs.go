package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"
)

// mirrorPrograms is the engine over a mirror's folder.
type mirrorPrograms struct {
	programs
	remote remote
	opts   Options
	log    *zap.Logger
	git    version
	smart  smartRemote
	forget func() // drops what is known of objects that are gone
}

var _ mirrorEngine = (*mirrorPrograms)(nil)

func newMirrorPrograms(ctx context.Context, o Options) (*mirrorPrograms, error) {
	r, err := parseRemote(o.URL)
	if err != nil {
		return nil, err
	}
	if err := checkIdent("author", o.Author); err != nil {
		return nil, err
	}
	if o.Dir == "" {
		return nil, &Error{Op: "open a mirror", Kind: ErrInvalid, Hint: "Dir is empty"}
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("open a mirror in %s: %w", o.Dir, err)
	}
	v, err := gitVersion(ctx)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.MaxRefBytes <= 0 {
		o.MaxRefBytes = DefaultMaxRefBytes
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	p := &mirrorPrograms{
		programs: programs{dir: dir, env: mirrorEnv(dir, r.scheme, o.CAFile), bounded: true},
		remote:   r, opts: o, git: v,
		log: o.Log.With(zap.String("mirror", dir), zap.String("remote", r.url)),
	}
	p.initReader()
	return p, p.openSmart()
}

// adoptFormerDir moves a mirror of the same address to where it belongs now. A mirror that can't be
// moved is fetched again.
func (mp *mirrorPrograms) adoptFormerDir() {
	if mp.opts.FormerDir == "" {
		return
	}
	former, err := filepath.Abs(mp.opts.FormerDir)
	if err != nil || former == mp.dir {
		return
	}
	url, err := os.ReadFile(filepath.Join(former, markerFile))
	if err != nil || strings.TrimSpace(string(url)) != mp.remote.url {
		return
	}
	if _, err := os.Lstat(mp.dir); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err := os.Rename(former, mp.dir); err != nil {
		mp.log.Warn("an earlier version's mirror can't be moved, so the repository is fetched anew", zap.String("from", former),
			zap.Error(err))
		return
	}
	mp.log.Info("moved an earlier version's mirror", zap.String("from", former))
}

// prepareDir leaves a usable mirror in p.dir.
func (mp *mirrorPrograms) prepareDir(ctx context.Context, m *Mirror) error {
	mp.adoptFormerDir()
	for _, leftover := range []string{mp.dir + ".new", mp.dir + ".old"} {
		if err := os.RemoveAll(leftover); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(mp.dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return mp.createEmpty(ctx)
	}
	if err != nil {
		return err
	}
	url, err := os.ReadFile(filepath.Join(mp.dir, markerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the folder is not empty and is no mirror of Liftlock's; choose another, or remove it")
	}
	if err != nil {
		return err
	}
	if was := strings.TrimSpace(string(url)); was != mp.remote.url {
		mp.log.Warn("the mirror is of another address, making it anew", zap.String("was", shortenForLog(was)))
		return mp.createEmpty(ctx)
	}
	if err := mp.repair(); err != nil {
		return err
	}
	if err := m.checkIntegrity(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		mp.log.Warn("the mirror is damaged, making it anew", zap.Error(err))
		return mp.createEmpty(ctx)
	}
	return nil
}

// createEmpty makes an empty mirror beside p.dir and puts it in its place, so that
// a half-made one is never found there.
func (mp *mirrorPrograms) createEmpty(ctx context.Context) error {
	mp.closePrograms()
	fresh, old := mp.dir+".new", mp.dir+".old"
	for _, d := range []string{fresh, old} {
		if err := os.RemoveAll(d); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(fresh, 0o700); err != nil {
		return err
	}
	c := mp.gitCommand("init", "--bare", "--quiet", "--template=", "--initial-branch=main", "--", fresh)
	c.Args = c.Args[1:] // there is no --git-dir yet
	c.Dir = fresh
	if _, err := mp.runGit(ctx, c); err != nil {
		return err
	}
	if err := mp.writeConfig(fresh); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(fresh, markerFile), []byte(mp.remote.url+"\n"), 0o600); err != nil {
		return err
	}
	if err := os.Rename(mp.dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(fresh, mp.dir); err != nil {
		return err
	}
	mp.closePrograms() // a read may have started them on the old folder
	mp.forget()
	mp.damaged.Store(false)
	return os.RemoveAll(old)
}
