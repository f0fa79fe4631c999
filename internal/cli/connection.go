package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
)

// Connection reaches the cluster as kubectl does: its fields are flags of a command.
type Connection struct {
	Kubeconfig string // "" is found by the rules of kubectl
	context    string // "" is the current one
	Namespace  string // "" is that of the kubeconfig
}

// AddFlags adds --kubeconfig and --context to a command and those below it.
func (k *Connection) AddFlags(c *cobra.Command) {
	c.PersistentFlags().StringVar(&k.Kubeconfig, "kubeconfig", "",
		"`file` that says how to reach the cluster; empty is $KUBECONFIG, ~/.kube/config, or the cluster that this runs in")
	c.PersistentFlags().StringVar(&k.context, "context", "", "`context` of that file; empty is its current one")
}

// loader reads kubeconfig files by kubectl's rules.
func (k *Connection) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.Kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: k.context})
}

// ContextName returns the name of the context of the kubeconfig, "" if it has none.
func (k *Connection) ContextName() string {
	if k.context != "" {
		return k.context
	}
	raw, err := k.loader().RawConfig()
	if err != nil {
		return ""
	}
	return raw.CurrentContext
}

// Connect returns how the cluster is reached, and a client that knows the kinds of Foresail.
func (k *Connection) Connect() (*rest.Config, client.Client, error) {
	config, err := k.loader().ClientConfig()
	if err != nil {
		return nil, nil, BadFlag("kubeconfig", fmt.Sprintf("%q", k.Kubeconfig),
			fmt.Sprintf("a readable kubeconfig file, or empty where kubectl needs none: %v", err))
	}
	config.UserAgent = UserAgent()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, nil, err
	}
	ctrl.SetLogger(klog.Background()) // without one controller-runtime prints a stack after half a minute
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the cluster at %s: %w", config.Host, err)
	}
	return config, c, nil
}

// Namespaced returns a client of the cluster, and the namespace that NamespaceOrDefault returns.
func (k *Connection) Namespaced() (client.Client, string, error) {
	_, objects, err := k.Connect()
	if err != nil {
		return nil, "", err
	}
	namespace, err := k.NamespaceOrDefault()
	return objects, namespace, err
}

// NamespaceOrDefault returns the namespace that is given, or that of the kubeconfig.
func (k *Connection) NamespaceOrDefault() (string, error) {
	if k.Namespace != "" {
		return k.Namespace, nil
	}
	namespace, _, err := k.loader().Namespace()
	if err != nil {
		return "", BadFlag("namespace", `""`, "given where the kubeconfig has none")
	}
	return namespace, nil
}

// Clientset returns a client for what every cluster has.
func (k *Connection) Clientset() (*rest.Config, kubernetes.Interface, error) {
	config, _, err := k.Connect()
	if err != nil {
		return nil, nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	return config, client, nil
}

// completionTimeout bounds how long a prompt waits for names of objects.
const completionTimeout = 2 * time.Second

// CompleteMetrics completes the one argument of a command with the names of PredictedMetrics.
func (k *Connection) CompleteMetrics(c *cobra.Command, args []string, _ string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	return k.complete(c, args, &v1alpha1.PredictedMetricList{})
}

// CompletePools completes the one argument of a command with the names of WorkerPools.
func (k *Connection) CompletePools(c *cobra.Command, args []string, _ string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	return k.complete(c, args, &v1alpha1.WorkerPoolList{})
}

// complete completes a command's one argument with the names of a kind. Without an answer of the
// cluster it completes nothing.
func (k *Connection) complete(
	c *cobra.Command, args []string, list client.ObjectList,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(c.Context(), completionTimeout)
	defer cancel()
	names, err := k.names(ctx, list)
	if err != nil {
		cobra.CompDebugln(err.Error(), false)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// names lists the objects of a kind, in the namespace if the kind has one.
func (k *Connection) names(ctx context.Context, list client.ObjectList) ([]string, error) {
	objects, namespace, err := k.Namespaced()
	if err != nil {
		return nil, err
	}
	if err := objects.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	return EachObject(list, client.Object.GetName), nil
}
