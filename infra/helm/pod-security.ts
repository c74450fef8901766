// The restricted Pod Security Standard of Kubernetes 1.35, which contains the baseline: its rules, one a line.
// https://kubernetes.io/docs/concepts/security/pod-security-standards/

// biome-ignore lint/suspicious/noExplicitAny: rendered pods
type Any = any

interface Rule {
  name: string
  pod?: (spec: Any) => boolean
  /** Check of each container and init container. */
  container?: (container: Any, spec: Any) => boolean
}

const VOLUMES = 'configMap csi downwardAPI emptyDir ephemeral persistentVolumeClaim projected secret'.split(' ')
const SYSCTLS = [
  'kernel.shm_rmid_forced net.ipv4.ip_local_port_range net.ipv4.ip_unprivileged_port_start net.ipv4.tcp_syncookies',
  'net.ipv4.ping_group_range net.ipv4.ip_local_reserved_ports net.ipv4.tcp_keepalive_time net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_keepalive_probes',
].flatMap((line) => line.split(' '))
const SELINUX_TYPES = ['', 'container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t']

const security = (of: Any) => of.securityContext ?? {}
const both = (allows: (context: Any) => boolean): Pick<Rule, 'pod' | 'container'> => ({
  pod: (spec) => allows(security(spec)),
  container: (container) => allows(security(container)),
})
const isProfile = (profile: Any) => ['RuntimeDefault', 'Localhost'].includes(profile?.type)
const hooks = ({ lifecycle = {}, ...probes }: Any) =>
  [lifecycle.postStart, lifecycle.preStop, probes.livenessProbe, probes.readinessProbe, probes.startupProbe].filter(
    Boolean,
  )

export const RESTRICTED: Rule[] = [
  { name: 'no host process', ...both(({ windowsOptions }) => !windowsOptions?.hostProcess) },
  { name: 'no namespaces of the host', pod: (spec) => !(spec.hostNetwork || spec.hostPID || spec.hostIPC) },
  { name: 'not privileged', container: (container) => !security(container).privileged },
  { name: 'drops all capabilities', container: (it) => security(it).capabilities?.drop?.includes('ALL') === true },
  {
    name: 'adds no capability but NET_BIND_SERVICE',
    container: (it) => (security(it).capabilities?.add ?? []).every((name: string) => name === 'NET_BIND_SERVICE'),
  },
  {
    name: 'volumes of harmless types only',
    pod: (spec) =>
      (spec.volumes ?? []).every(({ name: _, ...volume }: Any) =>
        Object.keys(volume).every((type) => VOLUMES.includes(type)),
      ),
  },
  { name: 'no ports of the host', container: (it) => (it.ports ?? []).every((port: Any) => !port.hostPort) },
  {
    name: 'no hosts in probes and hooks',
    container: (it) => hooks(it).every((hook) => !hook.httpGet?.host && !hook.tcpSocket?.host),
  },
  { name: 'AppArmor is on', ...both(({ appArmorProfile: it }) => it === undefined || isProfile(it)) },
  {
    name: 'SELinux as it is',
    ...both(({ seLinuxOptions: it = {} }) => SELINUX_TYPES.includes(it.type ?? '') && !it.user && !it.role),
  },
  { name: '/proc is masked', container: (it) => (security(it).procMount ?? 'Default') === 'Default' },
  {
    name: 'safe sysctls only',
    pod: (spec) => (security(spec).sysctls ?? []).every((it: Any) => SYSCTLS.includes(it.name)),
  },
  { name: 'no privilege escalation', container: (it) => security(it).allowPrivilegeEscalation === false },
  {
    name: 'not root by declaration',
    container: (it, spec) => (security(it).runAsNonRoot ?? security(spec).runAsNonRoot) === true,
  },
  { name: 'not root by number', ...both(({ runAsUser }) => runAsUser !== 0) },
  {
    name: 'a seccomp profile',
    container: (it, spec) => isProfile(security(it).seccompProfile ?? security(spec).seccompProfile),
  },
]

export function brokenRules(spec: Any): string[] {
  const containers = [...(spec.initContainers ?? []), ...spec.containers]
  return RESTRICTED.filter(
    ({ pod, container }) => (pod && !pod(spec)) || (container && !containers.every((it: Any) => container(it, spec))),
  ).map(({ name }) => name)
}
