//! Finding a cloud's settings: the environment, the files, and who wins over whom.

use std::fmt;
use std::path::PathBuf;

use super::clouds_yaml::{CloudFile, Entry};
use super::settings::Settings;
use super::{CloudConfig, ConfigError};

/// Reads a variable.
type Lookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Finds the configuration of one cloud, with the precedence of OpenStack's own tools: what is
/// [set](Self::set) here, over the `OS_*` environment, over `secure.yaml`, over `clouds.yaml`, over
/// the entry's profile in `clouds-public.yaml`.
///
/// The files are the one that `OS_CLIENT_CONFIG_FILE` (`OS_CLIENT_SECURE_FILE`) names, or else the
/// first found in `.`, `$XDG_CONFIG_HOME/openstack` (`~/.config/openstack`) and `/etc/openstack`. Without
/// a cloud's name the files are not used, and the environment must say where the cloud is.
///
/// `auth_type` is one of `password` (`v3password`; the default), `token` (`v3token`; the default where
/// there is a token and no password), `v3applicationcredential`, `http_basic` and `none` (`noauth`) for a
/// standalone Ironic, and `admin_token`: a fixed `token` that is sent as it is, as a Placement with
/// `auth_strategy = noauth2` wants it. The last three know no catalog and need
/// `baremetal_endpoint_override` or `placement_endpoint_override`; for Ironic `endpoint` does as well.
///
/// ```
/// use unprovision_session::Clouds;
/// # let folder = tempfile::tempdir()?;
/// # std::fs::write(folder.path().join("clouds.yaml"), "clouds:
/// #   prod: {auth: {auth_url: 'https://keystone', username: u, password: p, system_scope: all}}")?;
///
/// let environment = |name: &str| (name == "OS_CLOUD").then(|| "prod".to_owned());
/// let config = Clouds::new(environment) // or Clouds::from_process_env()
///     .directories([folder.path()])
///     .set("interface", "internal")
///     .load()?;
/// assert_eq!(config.name(), "prod");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Clouds<'a> {
    lookup: Box<Lookup<'a>>,
    cloud: Option<String>,
    explicit: Vec<(String, String)>,
    directories: Option<Vec<PathBuf>>,
}

// By hand: the settings may be secret.
impl fmt::Debug for Clouds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.explicit.iter().map(|(key, _)| key).collect();
        f.debug_struct("Clouds")
            .field("cloud", &self.cloud)
            .field("explicit", &keys)
            .field("directories", &self.directories)
            .finish_non_exhaustive()
    }
}

impl<'a> Clouds<'a> {
    /// Takes environment variables from `lookup`, and nothing from the process behind its back.
    pub fn new(lookup: impl Fn(&str) -> Option<String> + 'a) -> Self {
        let lookup = Box::new(move |name: &str| lookup(name).filter(|text| !text.is_empty()));
        Self {
            lookup,
            cloud: None,
            explicit: Vec::new(),
            directories: None,
        }
    }

    /// Takes environment variables from the process.
    pub fn from_process_env() -> Self {
        Self::new(|name| std::env::var(name).ok())
    }

    /// Names the cloud; wins over `OS_CLOUD`.
    #[must_use]
    pub fn cloud(mut self, name: impl Into<String>) -> Self {
        self.cloud = Some(name.into());
        self
    }

    /// Sets one setting by its name in `clouds.yaml`, such as `region_name`; wins over everything.
    #[must_use]
    pub fn set(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.explicit.push((key.into(), value.into()));
        self
    }

    /// Looks for files in these directories rather than in the usual ones.
    #[must_use]
    pub fn directories<P: Into<PathBuf>>(mut self, directories: impl IntoIterator<Item = P>) -> Self {
        self.directories = Some(directories.into_iter().map(Into::into).collect());
        self
    }

    /// Reads the files and puts the layers together. Blocks for as long as reading small files takes.
    ///
    /// # Errors
    /// [`ConfigError`] says which file, cloud and key is wrong, and what there is instead.
    pub fn load(mut self) -> Result<CloudConfig, ConfigError> {
        let explicit = Settings::explicit(std::mem::take(&mut self.explicit))?;
        let given = explicit.over(Settings::from_environment(&self.lookup));
        let name = self.cloud.take().or_else(|| (self.lookup)("OS_CLOUD"));
        match name {
            Some(name) => self.named(name, given),
            None if given.mean_a_cloud() => CloudConfig::resolve("environment".to_owned(), &given),
            None => {
                let known = self
                    .file("clouds", Some("OS_CLIENT_CONFIG_FILE"))?
                    .entries
                    .into_keys()
                    .collect();
                Err(ConfigError::NoCloud { known })
            }
        }
    }

    fn named(&self, name: String, given: Settings) -> Result<CloudConfig, ConfigError> {
        let clouds = self.file("clouds", Some("OS_CLIENT_CONFIG_FILE"))?;
        let secure = self.file("secure", Some("OS_CLIENT_SECURE_FILE"))?;
        let public = self.file("clouds-public", None)?;
        let own = clouds.entries.get(&name);
        let secrets = secure.entries.get(&name);
        if own.is_none() && secrets.is_none() {
            return Err(self.unknown_cloud(name, &clouds, &secure));
        }
        let profile = profile_of(&name, own, &public)?;

        let home = (self.lookup)("HOME");
        let layer = |file: &CloudFile, entry: Option<&Entry>| {
            entry
                .map(|entry| entry.layer(&file.path, home.as_deref()))
                .unwrap_or_default()
        };
        let files = layer(&secure, secrets)
            .over(layer(&clouds, own))
            .over(layer(&public, profile));

        // An entry's own list of regions replaces the one of its profile.
        let has_regions = |entry: &&Entry| !entry.regions.is_empty();
        let (file, regions) = match (own.filter(has_regions), profile.filter(has_regions)) {
            (Some(entry), _) => (&clouds, entry.regions.as_slice()),
            (None, Some(entry)) => (&public, entry.regions.as_slice()),
            (None, None) => return CloudConfig::resolve(name, &given.over(files)),
        };
        let wanted = given.get("region_name").or(files.get("region_name"));
        let (region, values) = region_of(&name, wanted, regions)?;
        let mut in_region = layer(file, Some(values));
        in_region.insert("region_name", region.clone(), &file.path.to_string_lossy().into());
        CloudConfig::resolve(name, &given.over(in_region).over(files))
    }

    /// The file that a variable names, or else the first of its usual places; empty if there is none.
    fn file(&self, stem: &str, variable: Option<&str>) -> Result<CloudFile, ConfigError> {
        if let Some((variable, path)) = variable.and_then(|name| Some((name, (self.lookup)(name)?))) {
            // Unlike openstacksdk: another file than the one that is named may describe another cloud.
            let path = PathBuf::from(path);
            let problem = format!("{variable} names this file, but there is none");
            return CloudFile::read(&path)?.ok_or(ConfigError::File { path, problem });
        }
        for path in self.places(stem) {
            if let Some(file) = CloudFile::read(&path)? {
                return Ok(file);
            }
        }
        Ok(CloudFile::default())
    }

    fn places(&self, stem: &str) -> Vec<PathBuf> {
        let directories = self.directories.clone().unwrap_or_else(|| {
            let xdg = (self.lookup)("XDG_CONFIG_HOME").map(PathBuf::from);
            let home = (self.lookup)("HOME").map(|home| PathBuf::from(home).join(".config"));
            let user = xdg.or(home).map(|config| config.join("openstack"));
            [PathBuf::from(".")]
                .into_iter()
                .chain(user)
                .chain([PathBuf::from("/etc/openstack")])
                .collect()
        });
        let extensions = ["yaml", "yml", "json"];
        directories
            .iter()
            .flat_map(|folder| extensions.map(|extension| folder.join(format!("{stem}.{extension}"))))
            .collect()
    }

    fn unknown_cloud(&self, cloud: String, clouds: &CloudFile, secure: &CloudFile) -> ConfigError {
        let mut known: Vec<_> = clouds
            .entries
            .keys()
            .chain(secure.entries.keys())
            .cloned()
            .collect();
        known.sort();
        known.dedup();
        let found = Some(clouds.path.clone()).filter(|path| !path.as_os_str().is_empty());
        let searched = found.map_or_else(|| self.places("clouds"), |path| vec![path]);
        ConfigError::UnknownCloud {
            cloud,
            known,
            searched,
        }
    }
}

fn profile_of<'f>(
    cloud: &str,
    own: Option<&Entry>,
    public: &'f CloudFile,
) -> Result<Option<&'f Entry>, ConfigError> {
    let Some(profile) = own.and_then(|entry| entry.profile.as_ref()) else {
        return Ok(None);
    };
    match public.entries.get(profile) {
        Some(entry) => Ok(Some(entry)),
        None => Err(ConfigError::UnknownProfile {
            cloud: cloud.to_owned(),
            profile: profile.clone(),
            known: public.entries.keys().cloned().collect(),
        }),
    }
}

/// The wanted region of a list. Unlike openstacksdk this does not take the first of several by itself:
/// whoever removes machines should say where.
fn region_of<'f>(
    cloud: &str,
    wanted: Option<&str>,
    regions: &'f [(String, Entry)],
) -> Result<&'f (String, Entry), ConfigError> {
    let names = || {
        regions
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    match (wanted, regions) {
        (None, [only]) => Ok(only),
        (None, _) => Err(ConfigError::Missing {
            cloud: cloud.to_owned(),
            key: "region_name".to_owned(),
            reason: format!("the cloud has the regions {}", names()),
        }),
        (Some(wanted), _) => {
            regions
                .iter()
                .find(|(name, _)| name == wanted)
                .ok_or_else(|| ConfigError::Invalid {
                    cloud: cloud.to_owned(),
                    key: "region_name".to_owned(),
                    from: "regions".to_owned(),
                    problem: format!("`{wanted}` is none of the cloud's regions {}", names()),
                })
        }
    }
}

#[cfg(test)]
mod tests;
