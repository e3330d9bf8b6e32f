package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
)

// Load reads the server's file. getenv is os.LookupEnv, or a test's. The error
// is a [strictyaml.Errors] with everything that is wrong with the file, or one
// of reading it.
func Load(path string, getenv func(string) (string, bool)) (*Config, error) {
	data, err := readFile(path, strictyaml.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("read the server's file: %w", err)
	}
	config, _, err := parseConfig(path, data, getenv)
	return config, err
}

// FindWarnings finds what is worth a second look in a valid server's file, each with file and line: it works, and
// is most likely not meant. None where the file isn't valid; the error is one of reading it.
func FindWarnings(path string, getenv func(string) (string, bool)) (strictyaml.Errors, error) {
	data, err := readFile(path, strictyaml.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("read the server's file: %w", err)
	}
	_, warnings, err := parseConfig(path, data, getenv)
	if err != nil {
		return nil, nil // Load says what is wrong
	}
	return warnings, nil
}

// parseConfig reads the content of the server's file at path.
func parseConfig(path string, data []byte, getenv func(string) (string, bool)) (read *Config, warnings strictyaml.Errors,
	err error,
) {
	docs, err := strictyaml.Parse(path, data)
	switch {
	case err != nil:
		return nil, nil, err
	case len(docs) == 0:
		return nil, nil, strictyaml.Errors{{File: path, Message: "the file is empty"}}
	case len(docs) > 1:
		return nil, nil, strictyaml.Errors{{File: path, Line: docs[1].Line(), Message: "a second document; the server's file holds only one"}}
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
		return nil, nil, fmt.Errorf("read the server's file %s: %w", path, err)
	}
	c.readSecrets(config)
	c.fillDefaults(config)
	c.checkAll(config)
	errs = append(errs, strictyaml.DropSameLineErrors(c.Errs, errs)...)
	if err := errs.Err(); err != nil {
		return nil, nil, err
	}
	return config, c.warnings, nil
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
