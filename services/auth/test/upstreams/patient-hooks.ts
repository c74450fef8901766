/** Adds the longest time limit for each enabled hook without one: a receiver shares the busy process of its test. */
export const withPatientHooks = <Settings extends Record<string, string>>(settings: Settings): Settings => ({
  ...Object.fromEntries(
    Object.keys(settings)
      .filter((name) => /^AUTH_HOOK_\w+_ENABLED$/.test(name))
      .map((name) => [name.replace(/ENABLED$/, 'TIMEOUT'), '15s']),
  ),
  ...settings,
})
