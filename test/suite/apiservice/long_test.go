//go:build long

package apiservice

import "testing"

// renewals is how often the authority is replaced: the last time because its Secret is deleted.
const renewals = 5

func TestRegistrationThroughFiveRenewals(t *testing.T) { testRegistration(t) }
