// Command oci writes the image as an OCI layout: two layers, Debian and the program, of which
// only the second changes with most releases. With -extract it writes the files of an image
// as a tar archive to standard output.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

type options struct {
	layout, arch, debian, program, revision string
	created                                 int64
}

func main() {
	var o options
	extract := flag.Bool("extract", false, "write the files of the layout's image to standard output")
	flag.StringVar(&o.layout, "layout", "", "the folder of the OCI layout")
	flag.StringVar(&o.arch, "arch", "", "of the program: amd64 or arm64")
	flag.StringVar(&o.debian, "debian", "", "a tar archive of the root without the program")
	flag.StringVar(&o.program, "program", "", "the program")
	flag.StringVar(&o.revision, "revision", "", "the commit")
	flag.Int64Var(&o.created, "created", 0, "when, in seconds since 1970: the commit's time")
	flag.Parse()
	run := o.write
	if *extract {
		run = func() error { return extractImage(o.layout, os.Stdout) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "oci:", err)
		os.Exit(1)
	}
}

// write writes the image and says how large it is.
func (o options) write() error {
	debian, err := tarball.LayerFromFile(o.debian, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return fmt.Errorf("read Debian's root: %w", err)
	}
	created := time.Unix(o.created, 0).UTC()
	program, err := programLayer(o.program, created)
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{Layer: debian, History: v1.History{Created: v1.Time{Time: created},
		CreatedBy: "deploy/image/build: Debian"}},
		mutate.Addendum{Layer: program, History: v1.History{Created: v1.Time{Time: created}, CreatedBy: "deploy/image/build: the program"}})
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.Created, config.OS, config.Architecture = v1.Time{Time: created}, "linux", o.arch
	// As deploy/image/Dockerfile.
	config.Config = v1.Config{
		User: "65532:65532", Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp"},
		WorkingDir: "/var/lib/liftlock",
		Entrypoint: []string{"/usr/bin/liftlock"}, Cmd: []string{"serve", "--config", "/etc/liftlock/config/liftlock.yaml"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}, "8081/tcp": {}}, Volumes: map[string]struct{}{"/var/lib/liftlock": {},
			"/tmp": {}},
		Labels: map[string]string{"org.opencontainers.image.source": "https://github.com/liftlock/liftlock",
			"org.opencontainers.image.revision": o.revision, "org.opencontainers.image.licenses": "Apache-2.0"},
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return err
	}
	path, err := layout.Write(o.layout, empty.Index)
	if err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	if err := path.AppendImage(image, layout.WithPlatform(v1.Platform{OS: "linux", Architecture: o.arch})); err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	return printSizes(image, o)
}

// programLayer has the program alone. Its owner, its mode and its time don't depend on the file's.
func programLayer(file string, created time.Time) (v1.Layer, error) {
	program, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "usr/bin/liftlock", Mode: 0o755, Size: int64(len(program)), ModTime: created,
		Format: tar.FormatPAX}); err != nil {
		return nil, err
	}
	if _, err := w.Write(program); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

// printSizes says what is pulled, and what lies on a disk then.
func printSizes(image v1.Image, o options) error {
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	var pulled int64
	for _, l := range layers {
		n, err := l.Size()
		if err != nil {
			return err
		}
		pulled += n
	}
	program, err := os.Stat(o.program)
	if err != nil {
		return err
	}
	debian, err := os.Stat(o.debian)
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	const mb = 1e6
	fmt.Printf("image: %.0f MB, %.0f MB to pull; the program %.1f MB, Debian %.0f MB; linux/%s %s in %s\n",
		float64(program.Size()+debian.Size())/mb, float64(pulled)/mb, float64(program.Size())/mb, float64(debian.Size())/mb, o.arch,
		digest, o.layout)
	return nil
}

// extractImage writes the files of a layout's only image.
func extractImage(dir string, w io.Writer) (err error) {
	path, err := layout.FromPath(dir)
	if err != nil {
		return fmt.Errorf("read the layout: %w", err)
	}
	index, err := path.ImageIndex()
	if err != nil {
		return fmt.Errorf("read the layout: %w", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return fmt.Errorf("read the layout: %w", err)
	}
	if len(manifest.Manifests) != 1 {
		return fmt.Errorf("the layout %s has %d images, not one", dir, len(manifest.Manifests))
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		return fmt.Errorf("read the layout: %w", err)
	}
	files := mutate.Extract(image)
	defer func() { err = errors.Join(err, files.Close()) }()
	_, err = io.Copy(w, files)
	return err
}
