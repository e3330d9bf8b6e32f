package forge

import (
	"cmp"
	"maps"
	"slices"
)

// GivenReview is a review as a forge lists it.
type GivenReview struct {
	Review
	Decides bool // it approved or asked for changes, whether that was dismissed since or not
}

// NewestReviews gives one review a person, oldest first, out of all in the order in which they were
// given. It is the last that decides, or the last comment of a person who decided nothing. A
// comment after an approval doesn't take it back.
func NewestReviews(all []GivenReview) []Review {
	byUser := map[string]GivenReview{}
	for _, v := range all {
		if v.Decides || !byUser[v.User].Decides {
			byUser[v.User] = v
		}
	}
	reviews := make([]Review, 0, len(byUser))
	for _, user := range slices.Sorted(maps.Keys(byUser)) {
		reviews = append(reviews, byUser[user].Review)
	}
	slices.SortStableFunc(reviews, func(a, b Review) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.User, b.User)) })
	return reviews
}
