package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/liftlock/liftlock/internal/strictyaml"
)

// Load reads the server's file. getenv is os.LookupEnv, or a test's. The error
// is a [strictyaml.Errors] with everything that is wrong with the file, or one
// of reading it.
func Load(path string, getenv func(string) (string, bool)) (*Config, error) {
	data, err := readFile(path, strictyaml.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("read the server's file: %w", err)
	}
	return parseConfig(path, data, getenv)
}

// parseConfig reads the content of the server's file at path.
func parseConfig(path string, data []byte, getenv func(string) (string, bool)) (*Config, error) {
	docs, err := strictyaml.Parse(path, data)
	switch {
	case err != nil:
		return nil, err
	case len(docs) == 0:
		return nil, strictyaml.Errors{{File: path, Message: "the file is empty"}}
	case len(docs) > 1:
		return nil, strictyaml.Errors{{File: path, Line: docs[1].Line(), Message: "a second document; the server's file holds only one"}}
	}
	config := &Config{}
	c := &checker{folder: filepath.Dir(path), expanded: map[string]string{}}
	c.Checker = strictyaml.Checker{Doc: docs[0], Hide: c.hideVariables}
	lookup := func(name string) (string, bool) {
		value, ok := getenv(name)
		c.expanded[name] = value
		return value, ok
	}
	var errs strictyaml.Errors
	if err := docs[0].Decode(config, strictyaml.Expand(lookup)); err != nil && !errors.As(err, &errs) {
		return nil, fmt.Errorf("read the server's file %s: %w", path, err)
	}
	c.readSecrets(config)
	c.fillDefaults(config)
	c.checkAll(config)
	errs = append(errs, strictyaml.DropSameLineErrors(c.Errs, errs)...)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return config, nil
}

// ValidateFile checks a server's file as Load does, its variables and secret
// files included.
func ValidateFile(path string, getenv func(string) (string, bool)) error {
	_, err := Load(path, getenv)
	return err
}

// readFile reads a file of at most limit bytes; of a longer one, a byte more.
func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit+1))
}
