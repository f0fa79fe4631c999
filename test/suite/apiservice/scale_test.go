//go:build !long

package apiservice

import "testing"

// renewals is how often the authority is replaced: the last time because its Secret is deleted.
const renewals = 2

func TestRegistration(t *testing.T) { testRegistration(t) }
