import { boolean, duration, httpUrl, oneOf, text, type Values, type Variables } from '@services/common/config/variables'

export const captchaVariables = {
  SECURITY_CAPTCHA_ENABLED: boolean('Require a captcha on public endpoints.', { default: 'false' }),
  SECURITY_CAPTCHA_PROVIDER: oneOf(['hcaptcha', 'turnstile'], 'Captcha provider.', { default: 'hcaptcha' }),
  SECURITY_CAPTCHA_SECRET: text("The captcha provider's secret; required when enabled.", { secret: true }),
  SECURITY_CAPTCHA_TIMEOUT: duration('Longest wait for the captcha provider.', {
    default: '10s',
    positive: true,
    max: '1h',
  }),
  SECURITY_CAPTCHA_URL: httpUrl("Address that verifies captchas; the provider's own when unset."),
} satisfies Variables

export const captchaSettings = (values: Values<typeof captchaVariables>) => ({
  enabled: values.SECURITY_CAPTCHA_ENABLED,
  provider: values.SECURITY_CAPTCHA_PROVIDER,
  secret: values.SECURITY_CAPTCHA_SECRET?.trim(),
  timeoutSeconds: values.SECURITY_CAPTCHA_TIMEOUT,
  url: values.SECURITY_CAPTCHA_URL,
})

export function captchaProblems(values: Values<typeof captchaVariables>): string[] {
  const missing = values.SECURITY_CAPTCHA_ENABLED && !values.SECURITY_CAPTCHA_SECRET?.trim()
  return missing ? ['AUTH_SECURITY_CAPTCHA_SECRET is required while AUTH_SECURITY_CAPTCHA_ENABLED is true'] : []
}
