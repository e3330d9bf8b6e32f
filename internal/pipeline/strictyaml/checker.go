package strictyaml

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Checker collects what is wrong with a document beyond its form. Its messages
// show no more of a value than a check's own, and that through Hide.
type Checker struct {
	Doc  *Document
	Errs Errors
	Hide func(message string) string // takes out what mustn't be seen; nil: nothing
}

// Errorf reports what is wrong at a path.
func (c *Checker) Errorf(path, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if c.Hide != nil {
		message = c.Hide(message)
	}
	c.Errs = append(c.Errs, c.Doc.Errorf(path, "%s", message))
}

// OneOf checks a choice.
func (c *Checker) OneOf(path, value string, choices ...string) {
	if !slices.Contains(choices, value) {
		c.Errorf(path, "%q is not one of %s%s", value, strings.Join(choices, ", "), DidYouMean(value, choices))
	}
}

// NotEmpty checks that a list has entries; what names one.
func (c *Checker) NotEmpty(path string, n int, what string) {
	if n == 0 {
		c.Errorf(path, "at least one %s is needed", what)
	}
}

// AtLeastOne checks a number.
func (c *Checker) AtLeastOne(path string, n int) {
	if n < 1 {
		c.Errorf(path, "must be at least 1; it is %d", n)
	}
}

// ReadFile reads what Open of a file system gave, up to just beyond what Parse
// takes, which refuses it then.
func ReadFile(f io.ReadCloser, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxBytes+1))
}
