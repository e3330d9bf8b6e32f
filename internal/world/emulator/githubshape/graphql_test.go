package githubshape

import (
	"strings"
	"testing"
)

func TestCheckGraphQL(t *testing.T) {
	g, err := DescribeGraphQL()
	if err != nil {
		t.Fatal(err)
	}
	const (
		pull    = `{"query":"query($n:Int!){repository(owner:\"a\",name:\"b\"){pullRequest(number:$n){number headRefOid state createdAt author{__typename login ...on User{databaseId}}}}}","variables":{"n":1}}`
		commit  = `{"query":"query($oid:GitObjectID!){repository(owner:\"a\",name:\"b\"){object(oid:$oid){...on Commit{authors(first:1){nodes{email}}}}}}","variables":{"oid":"0123456789012345678901234567890123456789"}}`
		review  = `{"query":"{repository(owner:\"a\",name:\"b\"){pullRequest(number:1){reviews(last:1){nodes{fullDatabaseId}}}}}"}`
		enqueue = `{"query":"mutation($id:ID!){enqueuePullRequest(input:{pullRequestId:$id}){clientMutationId}}","variables":{"id":"x"}}`
	)
	answer := func(pull string) string { return `{"data":{"repository":{"pullRequest":` + pull + `}}}` }
	whole := `{"number":1,"headRefOid":"0123456789012345678901234567890123456789","state":"OPEN","createdAt":"2026-03-02T12:00:00Z","author":{"__typename":"User","login":"ada","databaseId":3}}`
	change := func(from, to string) string { return answer(strings.Replace(whole, from, to, 1)) }
	for name, c := range map[string]struct{ call, answer, want string }{
		"as it should be":          {pull, answer(whole), ""},
		"not answered":             {pull, "", ""},
		"none":                     {pull, answer("null"), ""},
		"refused":                  {pull, `{"data":null,"errors":[{"message":"no"}]}`, ""},
		"nothing at all":           {pull, `{"data":null}`, "neither data nor errors"},
		"an author who is gone":    {pull, change(`{"__typename":"User","login":"ada","databaseId":3}`, "null"), ""},
		"another kind of author":   {pull, change(`"User","login":"ada","databaseId":3`, `"Bot","login":"ada"`), ""},
		"another kind's field":     {pull, change(`"User"`, `"Bot"`), ".author.databaseId: it is answered, and nobody reads it"},
		"more than is read":        {pull, change(`"number"`, `"title":"x","number"`), ".title: it is answered, and nobody reads it"},
		"less than is read":        {pull, change(`"number":1,`, ""), ".number: it is read, and not answered"},
		"null":                     {pull, change(`"OPEN"`, "null"), ".state: it is null, and never is"},
		"no such state":            {pull, change(`"OPEN"`, `"open"`), ".state: it is open, want PullRequestState"},
		"text for a number":        {pull, change(`"number":1`, `"number":"1"`), ".number: it is 1, want Int"},
		"no time":                  {pull, change("2026-03-02T12:00:00Z", "yesterday"), "want DateTime"},
		"no commit":                {pull, change("0123456789012345678901234567890123456789", "main"), "want GitObjectID"},
		"an object of its kind":    {commit, `{"data":{"repository":{"object":{"authors":{"nodes":[{"email":"a@b"}]}}}}}`, ""},
		"an object of another":     {commit, `{"data":{"repository":{"object":{}}}}`, ""},
		"no list":                  {commit, `{"data":{"repository":{"object":{"authors":{"nodes":{}}}}}}`, "want a list"},
		"a number in quotes":       {review, answer(`{"reviews":{"nodes":[{"fullDatabaseId":"5"}]}}`), ""},
		"a number without":         {review, answer(`{"reviews":{"nodes":[{"fullDatabaseId":5}]}}`), "want BigInt"},
		"what goes away":           {strings.Replace(review, "fullDatabaseId", "databaseId", 1), "", "PullRequestReview.databaseId goes away"},
		"a mutation":               {enqueue, `{"data":{"enqueuePullRequest":{"clientMutationId":null}}}`, ""},
		"an argument that isn't":   {strings.Replace(enqueue, "input:{pullRequestId", "input:{pullId", 1), "", "pullId"},
		"a field that isn't":       {strings.Replace(pull, "headRefOid", "headOid", 1), "", `Cannot query field "headOid"`},
		"a variable that is wrong": {strings.Replace(pull, `"n":1`, `"n":"one"`, 1), "", "variable.n"},
		"a variable that is lost":  {strings.Replace(pull, `"n":1`, "", 1), "", "must be defined"},
		"a variable too many":      {strings.Replace(pull, `"n":1`, `"n":1,"m":2`, 1), "", "no variable m"},
		"no document":              {`{"query":"{"}`, "", "Expected Name"},
	} {
		t.Run(name, func(t *testing.T) {
			var answered []byte
			if c.answer != "" {
				answered = []byte(c.answer)
			}
			got := strings.Join(g.Check([]byte(c.call), answered), "; ")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
