import { describe, expect, test } from 'vitest'
import { readConfig } from '../../services/auth/src/config.ts'
import { chart } from './auth-chart.ts'
import { chartTests } from './chart-tests.ts'
import { chartFolder, helm, render, valueFile } from './helm.ts'
import { all } from './rendered-objects.ts'

const minimal = {
  config: {
    AUTH_SITE_URL: 'https://app.example.com',
    AUTH_API_EXTERNAL_URL: 'https://auth.example.com',
    AUTH_SMTP_HOST: 'smtp.example.com',
    AUTH_SMTP_PORT: 587,
    AUTH_SMTP_ADMIN_EMAIL: 'no-reply@example.com',
  },
  existingSecret: 'auth-secrets',
}

chartTests({
  ...chart,
  readConfig,
  elsewhere: {
    AUTH_DATABASE_URL: 'postgres://auth:secret@postgres/auth',
    AUTH_JWT_SECRET: 'a secret of more than thirty-two bytes',
  },
  minimal,
  refused: [
    ['no site', { config: { AUTH_SITE_URL: '' } }, /config\.AUTH_SITE_URL is required: the URL of your application/],
    ['no address of its own', { config: { AUTH_API_EXTERNAL_URL: null } }, /config\.AUTH_API_EXTERNAL_URL is required/],
    ['no database', { existingSecret: '' }, /existingSecret is required.* secrets\.AUTH_DATABASE_URL/],
    [
      'no secret of tokens',
      { existingSecret: '', secrets: { AUTH_DATABASE_URL: 'postgres://x/y' } },
      /existingSecret is required.* secrets\.AUTH_JWT_SECRET/,
    ],
    [
      'a console without its sign-in',
      { console: { enabled: true } },
      /console\.enabled needs config\.AUTH_HOSTED_PAGES_ENABLED/,
    ],
    [
      'no mail server',
      { existingSecret: '', config: { AUTH_SMTP_HOST: '' }, secrets: { AUTH_DATABASE_URL: 'x', AUTH_JWT_SECRET: 'y' } },
      /config\.AUTH_SMTP_HOST is required while e-mail is enabled; set config\.AUTH_EXTERNAL_EMAIL_ENABLED to false/,
    ],
  ],
  wrong: [
    ['/worker', null],
    ['/podAnnotations', null],
    ['/networkPolicy/database', null],
    ['/service/port', null],
    ['/replicaCont', 2],
    ['/replicaCount', 'two'],
    ['/config/AUTH_SITE_URLL', 'https://app.example.com'],
    ['/config/AUTH_JWT_SECRET', 'a secret that everybody could read'],
    ['/config/AUTH_DATABASE_URL', 'postgres://x/y'],
    ['/config/AUTH_EXTERNAL_OIDC_WORK_SECRET', 'x'],
    ['/config/OTEL_EXPORTER_OTLP_HEADERS', 'api-key=x'],
    ['/config/AUTH_PORT', 9000],
    ['/config/AUTH_CONSOLE_PORT', 8090],
    ['/config/AUTH_SMTP_PORT', 'smtp'],
    ['/config/AUTH_MFA_TOTP_ENROLL_ENABLED', 'ja'],
    ['/config/AUTH_URI_ALLOW_LIST', ['https://a.example']],
    ['/secrets/AUTH_JWT_SECRETT', 'x'],
    ['/image/tga', '1'],
    ['/image/digest', 'sha256:1234'],
    ['/image/pullPolicy', 'Sometimes'],
    ['/fullnameOverride', 'Not_A_Name'],
    ['/extraEnv', { AUTH_SITE_URL: 'x' }],
    ['/extraEnv', [{ name: 'A', value: 1 }]],
    ['/resources/limit', {}],
    ['/resources/limits', { memory: '1 GB' }],
    ['/livenessProbe/periodSecond', 1],
    ['/podSecurityContext/runAsNonroot', true],
    ['/securityContext/runAsUser', 'root'],
    ['/pdb/maxUnavailable', 'one'],
    ['/autoscaling/maxReplicas', 0],
    ['/worker/enabled', 'yes'],
    ['/worker/replicas', 1],
    ['/migration/enable', false],
    ['/service/type', 'Cluster'],
    ['/service/port', 70_000],
    ['/ingress/hosts', ['auth.example.com']],
    ['/ingress/hosts', [{ host: 'a.example', paths: [{ path: 'no-slash' }] }]],
    ['/networkPolicy/database/ports', [5432]],
    ['/networkPolicy/from', [{ podSelektor: {} }]],
    ['/metrics/serviceMonitor/interval', 30],
    ['/affinity/podAntiafinity', {}],
    ['/topologySpreadConstraints', [{ topologyKey: 'zone' }]],
    ['/podLabels', { 'example.com/a': 'not a label' }],
  ],
})

/** Notes that helm prints after an install. */
async function notesOf(values: object): Promise<string> {
  const said = await helm('install', 'rel', chartFolder('auth'), '--dry-run=client', '-f', await valueFile(values))
  return said.split('NOTES:')[1] ?? ''
}

describe('the chart auth', { tags: 'helm' }, () => {
  test('its notes name the deployment and the missing settings', async () => {
    const bare = await notesOf(minimal)
    expect(bare).toContain('rollout status deployment/rel-auth\n')
    expect([...bare.matchAll(/^ {2}- (\S+ \S+)/gm)].map(([, words]) => words)).toEqual([
      'Nothing leads',
      'config.AUTH_RATE_LIMIT_HEADER is',
      'metrics.enabled is',
    ])
    const complete = {
      config: { ...minimal.config, AUTH_RATE_LIMIT_HEADER: 'X-Real-IP' },
      metrics: { enabled: true },
      ingress: { enabled: true, hosts: [{ host: 'auth.example.com' }], tls: [{ hosts: ['auth.example.com'] }] },
    }
    expect(await notesOf({ ...minimal, ...complete })).not.toContain('Still to do')
    const config = { ...complete.config, AUTH_WEB_CONCURRENCY: 4 }
    expect(await notesOf({ ...minimal, ...complete, config })).toMatch(/- config\.AUTH_WEB_CONCURRENCY is above 1/)
  })

  test('the console has a Service of its own, which no Ingress leads to, and its policy names who reaches it', async () => {
    const values = {
      config: { ...minimal.config, AUTH_HOSTED_PAGES_ENABLED: true },
      ingress: { enabled: true, hosts: [{ host: 'auth.example.com' }] },
      console: { enabled: true, port: 9443 },
    }
    const objects = await render('auth', 'rel', await valueFile({ ...minimal, ...values }))
    const console_ = all(objects, 'Service').find(({ metadata }) => metadata.name === 'rel-auth-console')
    expect(console_?.spec).toMatchObject({ type: 'ClusterIP', ports: [{ port: 9443, targetPort: 'console' }] })
    const [deployment] = all(objects, 'Deployment')
    const [container] = deployment?.spec.template.spec.containers ?? []
    expect(deployment?.spec.template.metadata.labels).toMatchObject(console_?.spec.selector)
    expect(container.ports).toContainEqual({ name: 'console', containerPort: 9443 })
    expect(container.env).toContainEqual({ name: 'AUTH_CONSOLE_PORT', value: '9443' })
    expect(JSON.stringify(all(objects, 'Ingress'))).not.toContain('console')
    const [policy] = all(objects, 'NetworkPolicy')
    expect(policy?.spec.ingress).toContainEqual({
      ports: [{ protocol: 'TCP', port: 'console' }],
      from: [{ podSelector: {} }],
    })
    const without = await render('auth', 'rel', await valueFile(minimal))
    expect(all(without, 'Service').map(({ metadata }) => metadata.name)).toEqual(['rel-auth'])
    expect(JSON.stringify(without)).not.toContain('AUTH_CONSOLE')
  })

  test.each([
    [587, [25, 465, 587, 2525]],
    [1025, [25, 465, 587, 2525, 1025]],
    ['1025', [25, 465, 587, 2525, 1025]],
  ])('the network policy permits mail on the configured port: %j', async (port, open) => {
    const values = await valueFile({ ...minimal, config: { ...minimal.config, AUTH_SMTP_PORT: port } })
    const [api] = all(await render('auth', 'rel', values), 'NetworkPolicy')
    const rules: { ports: { port: number }[] }[] = api?.spec.egress
    const mail = rules.map(({ ports }) => ports.map((each) => each.port)).find((ports) => ports.includes(25))
    expect(mail).toEqual(open)
  })
})
