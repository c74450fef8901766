import { expect, test } from 'vitest'
import { brokenRules, RESTRICTED } from './pod-security.ts'

const container = {
  name: 'a',
  image: 'a',
  securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
}
const pod = {
  securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
  containers: [container],
}
const ofPod = (securityContext: object, more: object = {}) => ({
  ...pod,
  ...more,
  securityContext: { ...pod.securityContext, ...securityContext },
})
const ofContainer = (securityContext: object, more: object = {}) => ({
  ...pod,
  containers: [
    container,
    { ...container, ...more, securityContext: { ...container.securityContext, ...securityContext } },
  ],
})

const breaks: [string, object][] = [
  ['no host process', ofPod({ windowsOptions: { hostProcess: true } })],
  ['no namespaces of the host', ofPod({}, { hostNetwork: true })],
  ['not privileged', ofContainer({ privileged: true })],
  ['drops all capabilities', ofContainer({ capabilities: { drop: ['NET_RAW'] } })],
  ['adds no capability but NET_BIND_SERVICE', ofContainer({ capabilities: { drop: ['ALL'], add: ['SYS_ADMIN'] } })],
  ['volumes of harmless types only', ofPod({}, { volumes: [{ name: 'a', hostPath: { path: '/' } }] })],
  ['no ports of the host', ofContainer({}, { ports: [{ containerPort: 1, hostPort: 1 }] })],
  ['no hosts in probes and hooks', ofContainer({}, { livenessProbe: { httpGet: { host: 'x', port: 1 } } })],
  ['AppArmor is on', ofContainer({ appArmorProfile: { type: 'Unconfined' } })],
  ['SELinux as it is', ofPod({ seLinuxOptions: { type: 'spc_t' } })],
  ['/proc is masked', ofContainer({ procMount: 'Unmasked' })],
  ['safe sysctls only', ofPod({ sysctls: [{ name: 'kernel.msgmax', value: '1' }] })],
  ['no privilege escalation', ofContainer({ allowPrivilegeEscalation: undefined })],
  ['not root by declaration', ofContainer({ runAsNonRoot: false })],
  ['not root by number', ofContainer({ runAsUser: 0 })],
  ['a seccomp profile', ofPod({ seccompProfile: { type: 'Unconfined' } })],
]

test('a restricted pod breaks no rule', () => {
  expect(brokenRules(pod)).toEqual([])
})

test.each(breaks)('%s: one pod that breaks this rule alone', (name, spec) => {
  expect(brokenRules(spec)).toEqual([name])
})

test('there is one for every rule', () => {
  expect(breaks.map(([name]) => name)).toEqual(RESTRICTED.map(({ name }) => name))
})
