package awstest

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Policy is an IAM policy document.
type Policy struct {
	Version   string
	Statement []Statement
}

// Statement allows actions on resources under conditions.
type Statement struct {
	Sid, Effect      string
	Action, Resource Strings
	Condition        map[string]map[string]Strings // operator, key, values
}

// Strings is a string or a list of them.
type Strings []string

// UnmarshalJSON implements [json.Unmarshaler].
func (s *Strings) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*s = Strings{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(s))
}

// Right is a permission that a call needs: an action on a resource, with the context of conditions.
type Right struct {
	Action, Resource string
	Context          map[string]Strings
}

// Allows reports whether the policy has a statement that allows the right. Denials are not supported.
func (p Policy) Allows(r Right) bool {
	return slices.ContainsFunc(p.Statement, func(s Statement) bool {
		return s.Effect == "Allow" && anyLike(s.Action, r.Action) && anyLike(s.Resource, r.Resource) &&
			s.holds(r.Context)
	})
}

// holds reports whether all conditions are met. A key that is missing from the context does not meet any.
func (s Statement) holds(context map[string]Strings) bool {
	for operator, keys := range s.Condition {
		for key, want := range keys {
			if !meets(operator, context[key], want) {
				return false
			}
		}
	}
	return true
}

func meets(operator string, has, want Strings) bool {
	among := func(value string) bool { return slices.Contains(want, value) }
	switch operator {
	case "StringEquals", "Bool":
		return len(has) == 1 && among(has[0])
	case "StringLike", "ArnEquals", "ArnLike":
		return len(has) == 1 && anyLike(want, has[0])
	case "ForAllValues:StringEquals":
		return !slices.ContainsFunc(has, func(value string) bool { return !among(value) })
	default:
		panic("unsupported condition: " + operator)
	}
}

// anyLike reports whether a value matches a pattern, in which * matches any characters and ? any character.
func anyLike(patterns Strings, value string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		quoted := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
		return regexp.MustCompile("(?s)^" + quoted + "$").MatchString(value)
	})
}

// iam enforces a policy. moto checks only the names of actions, but neither resources nor conditions.
type iam struct {
	fleets *fleets

	mu     sync.Mutex
	policy *Policy // nil: every call is allowed
	needed []Right // by calls since the policy is enforced
}

// Enforce rejects calls that a policy does not allow. It returns the rights that calls have needed so far.
func (m *iam) Enforce(p Policy) (needed func() []Right) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.policy, m.needed = &p, nil
	return func() []Right {
		m.mu.Lock()
		defer m.mu.Unlock()
		return slices.Clone(m.needed)
	}
}

// refused returns the answer to a call that the policy does not allow; nil if it does, or without a policy.
func (m *iam) refused(ctx context.Context, call *Call) *answer {
	m.mu.Lock()
	policy := m.policy
	m.mu.Unlock()
	if policy == nil {
		return nil
	}
	rights, err := rightsOf{m.fleets, call}.all(ctx)
	if err != nil {
		return failure(call, http.StatusNotImplemented, "", err.Error())
	}
	m.mu.Lock()
	m.needed = append(m.needed, rights...)
	m.mu.Unlock()
	for _, right := range rights {
		if !policy.Allows(right) {
			code := "AccessDeniedException"
			if call.Service == EC2 {
				code = "UnauthorizedOperation"
			}
			return failure(call, http.StatusForbidden, code, "not authorized: "+right.Action+" on "+right.Resource)
		}
	}
	return nil
}
