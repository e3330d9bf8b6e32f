package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"slices"
	"time"
)

// packArchive packs a program with what comes beside it. Everything is as old as the commit, is
// nobody's and in the order of its name.
func packArchive(p program, beside []file, date time.Time) (file, error) {
	files := append(slices.Clone(beside), file{name: p.fileName(), content: p.content, program: true})
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	out := file{name: archiveName(p.platform)}
	pack := packTar
	if p.system() == "windows" {
		pack = packZip
	}
	var err error
	out.content, err = pack(files, date.UTC())
	return out, err
}

func archiveName(platform string) string {
	p := program{platform: platform}
	if p.system() == "windows" {
		return "liftlock-" + platform + ".zip"
	}
	return "liftlock-" + platform + ".tar.gz"
}

func (f file) mode() fs.FileMode {
	if f.program {
		return 0o755
	}
	return 0o644
}

func packTar(files []file, date time.Time) ([]byte, error) {
	var b bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		header := &tar.Header{
			Format: tar.FormatUSTAR, Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.content)), Mode: int64(f.mode()), ModTime: date,
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.content); err != nil {
			return nil, err
		}
	}
	err = errors.Join(archive.Close(), compressed.Close())
	return b.Bytes(), err
}

func packZip(files []file, date time.Time) ([]byte, error) {
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: date}
		header.SetMode(f.mode())
		w, err := archive.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(w, bytes.NewReader(f.content)); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return b.Bytes(), err
}
