package policies_test

import (
	"fmt"

	"github.com/liftlock/liftlock/policies"
)

func ExampleGate_Evaluate() {
	gate := policies.Gate{Approvals: &policies.Approvals{
		Count: 2,
		From:  policies.From{Users: []string{"ada", "grace", "linus"}},
	}}
	result := gate.Evaluate(policies.Facts{
		Approvals: []policies.Approval{{User: "ada", MayWrite: true, Current: true}},
		Authors:   []policies.Account{{Login: "margaret"}},
		Bot:       policies.Account{Login: "liftlock-bot"},
	})
	fmt.Println(result.Outcome)
	fmt.Println(result.Reason)
	fmt.Println(result.Who)
	// Output:
	// wait
	// 1 of 2 approvals (ada); waiting for 1 more from grace, linus
	// [grace linus]
}

func ExampleGate_Evaluate_unknown() {
	gate := policies.Gate{Approvals: &policies.Approvals{Count: 1}}
	result := gate.Evaluate(policies.Facts{ApprovalsErr: "the forge limits the rate of calls until 14:05"})
	fmt.Println(result.Outcome + ": " + policies.Outcome(result.Reason))
	// Output:
	// wait: the approvals can't be read: the forge limits the rate of calls until 14:05
}

func ExampleApplyFloor() {
	// The pipeline asks for one approval by an owner, the server for two by anybody.
	gates := policies.ApplyFloor(
		[]policies.Gate{{Approvals: &policies.Approvals{Count: 1, From: policies.From{Users: []string{"ada"}}}}},
		&policies.Approvals{Count: 2},
	)
	for _, g := range gates {
		fmt.Println(g.Name(), g.Approvals.Count, g.Approvals.From.Users)
	}
	// Output:
	// approvals 1 [ada]
	// approvals 2 []
}
