package provider_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/provider"
)

func TestIDOf(t *testing.T) {
	for _, providerID := range []string{"aws:///eu-west-1a/i-0123", "aws:///i-0123", "aws://i-0123", "i-0123"} {
		require.Equal(t, "i-0123", provider.IDOf(providerID), providerID)
	}
	require.True(t, provider.Same("aws:///i-0123", "aws://i-0123"))
	require.False(t, provider.Same("aws:///i-0123", "aws:///i-0124"))
	require.False(t, provider.Same("aws:///", "aws:///"))
	require.Empty(t, provider.IDOf(""))
	require.Empty(t, provider.IDOf("aws:///"))
}
