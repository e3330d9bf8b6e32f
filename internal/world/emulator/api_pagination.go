package emulator

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

const (
	defaultPageSize = 30
	maxPageSize     = 100
)

// paginate cuts the call's page out of a list and links to the others.
func paginate[T any](c *call, all []T) []T {
	q := c.r.URL.Query()
	size := atLeast(q.Get("per_page"), 1, defaultPageSize)
	size = min(size, maxPageSize)
	page := atLeast(q.Get("page"), 1, 1)
	last := max(1, (len(all)+size-1)/size)
	c.setPageLinks(page, last)
	if page > last {
		return []T{}
	}
	return append([]T{}, all[(page-1)*size:min(page*size, len(all))]...)
}

// paginateAs is the call's page of a list, each element as show gives it.
func paginateAs[T, W any](c *call, all []T, show func(T) W) []W {
	shown := []W{}
	for _, x := range paginate(c, all) {
		shown = append(shown, show(x))
	}
	return shown
}

// atLeast reads a number of the query; what isn't one, or is too small, is otherwise.
func atLeast(s string, least, otherwise int) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < least {
		return otherwise
	}
	return n
}

func (c *call) setPageLinks(page, last int) {
	var links []string
	add := func(rel string, n int) {
		u := url.URL{Path: c.r.URL.Path}
		q := c.r.URL.Query()
		q.Set("page", strconv.Itoa(n))
		u.RawQuery = q.Encode()
		links = append(links, fmt.Sprintf("<%s%s>; rel=%q", c.url, u.String(), rel))
	}
	if page > 1 {
		add("prev", min(page-1, last))
	}
	if page < last {
		add("next", page+1)
		add("last", last)
	}
	if page > 1 {
		add("first", 1)
	}
	if len(links) > 0 {
		c.header.Set("Link", strings.Join(links, ", "))
	}
}
