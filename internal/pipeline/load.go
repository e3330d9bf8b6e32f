package pipeline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
)

// Where pipeline files are, from the repository's root.
const (
	FileName   = ".liftlock.yaml"
	FolderName = ".liftlock"
)

const (
	// maxFiles bounds how many files the folder may hold.
	maxFiles = 200
	// maxTotal bounds the bytes of all files together: a byte of YAML takes a hundred of memory.
	maxTotal = 4 * strictyaml.MaxBytes
)

// ErrNoPipeline says that a repository has no pipeline file.
var ErrNoPipeline = errors.New("no pipeline file: neither " + FileName + " nor " + FolderName + "/*.yaml")

// IsPipelinePath says whether a path from the repository's root is that of a
// pipeline file, existing or not.
func IsPipelinePath(file string) bool {
	return file == FileName || path.Dir(file) == FolderName && strings.HasSuffix(file, ".yaml")
}

// Load reads a repository's pipelines: those of .liftlock.yaml or those of
// .liftlock/*.yaml, in the order of the files' names. ErrNoPipeline: it has neither.
// A [strictyaml.Errors] is everything that is wrong with the files; any other
// error is one of reading them. No pipeline is returned with an error.
func Load(fsys fs.FS) ([]*Pipeline, error) {
	all, err := loadDocuments(fsys)
	if err != nil {
		return nil, err
	}
	return pipelinesOf(all), nil
}

// loadDocuments is Load with where each thing stands.
func loadDocuments(fsys fs.FS) ([]document, error) {
	files, err := FindFiles(fsys)
	if err != nil {
		return nil, err
	}
	contents := make([][]byte, len(files))
	total := 0
	for i, file := range files {
		if contents[i], err = strictyaml.ReadFile(fsys.Open(file)); err != nil {
			return nil, fmt.Errorf("read the pipeline file %s: %w", file, err)
		}
		if total += len(contents[i]); total > maxTotal {
			return nil, strictyaml.Errors{{File: file, Message: fmt.Sprintf("the pipeline files have more than %d bytes together, which "+
				"is too many", maxTotal)}}
		}
	}
	var all []document
	var errs strictyaml.Errors
	for i, file := range files {
		documents, err := parseDocuments(file, contents[i])
		var found strictyaml.Errors
		if err != nil && !errors.As(err, &found) {
			return nil, err
		}
		errs = append(errs, found...)
		all = append(all, documents...)
	}
	errs = append(errs, findDuplicateNames(all)...)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return all, nil
}

// FindFiles lists the pipeline files of a repository, from its root. ErrNoPipeline: there is none. A
// [strictyaml.Errors] is of files that have another name than they should, or are too many.
func FindFiles(fsys fs.FS) ([]string, error) {
	var files []string
	if _, err := fs.Stat(fsys, FileName); err == nil {
		files = append(files, FileName)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for %s: %w", FileName, err)
	}
	entries, err := fs.ReadDir(fsys, FolderName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the folder %s: %w", FolderName, err)
	}
	var inFolder []string
	for _, e := range entries {
		name := path.Join(FolderName, e.Name())
		switch {
		case e.IsDir():
		case strings.HasSuffix(name, ".yaml"):
			inFolder = append(inFolder, name)
		case strings.HasSuffix(name, ".yml"):
			return nil, newMisnamedFileError(name)
		}
	}
	switch {
	case len(files) > 0 && len(inFolder) > 0:
		return nil, strictyaml.Errors{{File: FileName, Message: "there is also " + inFolder[0] + "; keep the file or the folder, not both"}}
	case len(inFolder) > maxFiles:
		return nil, strictyaml.Errors{{File: FolderName, Message: fmt.Sprintf("%d pipeline files are too many; at most %d",
			len(inFolder), maxFiles)}}
	case len(files)+len(inFolder) > 0:
		return append(files, inFolder...), nil
	}
	if _, err := fs.Stat(fsys, ".liftlock.yml"); err == nil {
		return nil, newMisnamedFileError(".liftlock.yml")
	}
	return nil, ErrNoPipeline
}

func newMisnamedFileError(file string) error {
	return strictyaml.Errors{{File: file, Message: "pipeline files end in .yaml; rename it"}}
}

// ValidateFile checks one pipeline file on disk. The error is a
// [strictyaml.Errors], or one of reading the file.
func ValidateFile(file string) error {
	data, err := strictyaml.ReadFile(os.Open(file))
	if err != nil {
		return fmt.Errorf("read the pipeline file: %w", err)
	}
	_, err = Parse(file, data)
	return err
}

// LooksLikePipeline says whether a file means to be a pipeline file: its first document has an
// apiVersion or a kind, which the server's file doesn't.
func LooksLikePipeline(data []byte) bool {
	docs, err := strictyaml.Parse("", data)
	return err == nil && len(docs) > 0 && (docs[0].Has("apiVersion") || docs[0].Has("kind"))
}
